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
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisReduction reduction(x.shape(run), axes);
    CheckSomethingIsReduced("reduce_mean", x.shape(run), reduction);
    reduction.Sum(x(run), out(run), reduction.reduced_count());
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const AxisFlags axes = ReducedAxes(context);
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisReduction reduction(dx.shape(run), axes);
    const T share = T{1} / static_cast<T>(reduction.reduced_count());
    reduction.Broadcast(gradient(run), share, dx(run));
  });
}

}  // namespace

void RegisterReduceMean(OpRegistry& registry) {
  OpDef def =
      ReductionDef("reduce_mean", "Out = the mean of X over the axes `dim`. Fluid's reduce_mean.");
  def.precision = Precision::kHigh;
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
