// reduce_any: Out = whether any of X's elements over the axes `dim` are true, or false for no
// elements. Source: Fluid's reduce_any.
#include "operators/math/kernels/reduction.h"

namespace skiff {

void RegisterReduceAny(OpRegistry& registry) {
  OpDef def =
      ReductionDef("reduce_any",
                   "Out = whether any of X's elements over the axes `dim` are true. Fluid's "
                   "reduce_any.");
  def.attrs = ReductionAttributes(AttrType::kLongs);
  def.inputs.push_back(AttributeSlot("AxisTensor", "dim"));
  def.inputs.push_back(AttributeListSlot("AxisTensorList", "dim"));
  def.precision = Precision::kNone;
  def.no_gradient_reason = "bools have no derivative";
  registry.Add(std::move(def));
  registry.AddCpuKernels<bool>("reduce_any", []<typename>(PrepareContext& context) {
    const In<bool> x(context, "X");
    const Out<bool> out(context, "Out");
    return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
      const AxisReduction reduction(x.shape(run), axes);
      reduction.Any(x(run), out(run));
    });
  });
}

}  // namespace skiff
