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
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisReduction reduction(x.shape(run), axes);
    CheckSomethingIsReduced("reduce_min", x.shape(run), reduction);
    reduction.Min(x(run), out(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const In<T> x(context, "X");
  const In<T> out(context, "Out");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
    const AxisReduction reduction(dx.shape(run), axes);
    reduction.SpreadToEqual(x(run), out(run), gradient(run), dx(run));
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
