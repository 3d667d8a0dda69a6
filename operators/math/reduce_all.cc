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
  def.no_gradient_reason = "bools have no derivative";
  registry.Add(std::move(def));
  registry.AddCpuKernels<bool>("reduce_all", []<typename>(PrepareContext& context) {
    const int x = context.InputIndex("X");
    const int out = context.OutputIndex("Out");
    return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
      const AxisReduction reduction(run.input(x).shape(), axes);
      reduction.All(run.input(x).data<bool>(), run.output(out).data<bool>());
    });
  });
}

}  // namespace skiff
