// reduce_all: Out = whether all of X's elements over the axes `dim` are true, or true for no
// elements. Source: Fluid's reduce_all.
#include "operators/math/kernels/reduction.h"

namespace skiff {

void RegisterReduceAll(OpRegistry& registry) {
  OpDef def =
      ReductionDef("reduce_all",
                   "Out = whether all of X's elements over the axes `dim` are true. Fluid's "
                   "reduce_all.");
  def.attrs = ReductionAttributes(AttrType::kLongs);
  def.inputs.push_back(AttributeSlot("AxisTensor", "dim"));
  def.inputs.push_back(AttributeListSlot("AxisTensorList", "dim"));
  def.precision = Precision::kNone;
  def.no_gradient_reason = "bools have no derivative";
  registry.Add(std::move(def));
  registry.AddCpuKernels<bool>("reduce_all", []<typename>(PrepareContext& context) {
    const In<bool> x(context, "X");
    const Out<bool> out(context, "Out");
    return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
      const AxisReduction reduction(x.shape(run), axes);
      reduction.All(x(run), out(run));
    });
  });
}

}  // namespace skiff
