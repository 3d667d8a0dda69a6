// reduce_min: Out = the smallest element of X over the axes `dim`, or over all of them. NaN counts
// as the smallest. Source: Fluid's reduce_min; dX = dOut at every element that equals its Out, 0
// elsewhere. A minimum of no elements is an Error.
#include "framework/op/grad.h"
#include "operators/math/kernels/reduction.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const AxisFlags axes = ReducedAxes(context);
  const Shape& shape = context.Input("X").shape;
  CheckSomethingIsReduced("reduce_min", shape, AxisReduction(shape, axes));
  const int x = context.InputIndex("X");
  const int out = context.OutputIndex("Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisReduction reduction(run.input(x).shape(), axes);
    CheckSomethingIsReduced("reduce_min", run.input(x).shape(), reduction);
    reduction.Min(run.input(x).data<T>(), run.output(out).data<T>());
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const int x = context.InputIndex("X");
  const int out = context.InputIndex("Out");
  const int gradient = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
    const AxisReduction reduction(run.output(dx).shape(), axes);
    reduction.SpreadToEqual(run.input(x).data<T>(), run.input(out).data<T>(),
                            run.input(gradient).data<T>(), run.output(dx).data<T>());
  });
}

}  // namespace

void RegisterReduceMin(OpRegistry& registry) {
  OpDef def = ReductionDef(
      "reduce_min", "Out = the smallest element of X over the axes `dim`. Fluid's reduce_min.");
  OpDef grad = GradientOf(&def, {"X", "Out", OneOfAnyRank("Out@GRAD")}, {"X@GRAD"});
  grad.doc =
      "The gradient of reduce_min: dX = dOut at every element that equals its Out, 0 elsewhere.";
  grad.in_place = {{"X", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "reduce_min", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>("reduce_min_grad", []<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  });
}

}  // namespace skiff
