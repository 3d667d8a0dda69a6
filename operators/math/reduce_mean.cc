// reduce_mean: Out = the mean of X over the axes `dim`, or over all of them.
// Source: Fluid's reduce_mean; dX at an element = dOut at its mean / the number of its elements.
// Means of integers are truncated towards 0. A mean of no elements is an Error.
#include "framework/op/grad.h"
#include "operators/math/kernels/reduction.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const AxisFlags axes = ReducedAxes(context);
  const Shape& shape = context.Input("X").shape;
  CheckSomethingIsReduced("reduce_mean", shape, AxisReduction(shape, axes));
  const int x = context.InputIndex("X");
  const int out = context.OutputIndex("Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisReduction reduction(run.input(x).shape(), axes);
    CheckSomethingIsReduced("reduce_mean", run.input(x).shape(), reduction);
    reduction.Sum(run.input(x).data<T>(), run.output(out).data<T>(), reduction.reduced_count());
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const AxisFlags axes = ReducedAxes(context);
  const int gradient = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisReduction reduction(run.output(dx).shape(), axes);
    const T share = T{1} / static_cast<T>(reduction.reduced_count());
    reduction.Broadcast(run.input(gradient).data<T>(), share, run.output(dx).data<T>());
  });
}

}  // namespace

void RegisterReduceMean(OpRegistry& registry) {
  OpDef def =
      ReductionDef("reduce_mean", "Out = the mean of X over the axes `dim`. Fluid's reduce_mean.");
  OpDef grad = GradientOf(&def, {ForShape("X"), OneOfAnyRank("Out@GRAD")}, {"X@GRAD"});
  grad.doc =
      "The gradient of reduce_mean: dX = dOut / number of elements of a mean, broadcast over the "
      "reduced axes.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "reduce_mean", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "reduce_mean_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
