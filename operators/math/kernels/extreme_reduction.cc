#include "operators/math/kernels/extreme_reduction.h"

#include <memory>
#include <utility>

#include "framework/base/str_cat.h"
#include "framework/op/grad.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context, bool is_max) {
  const AxisFlags axes = ReducedAxes(context);
  const Shape& shape = context.Input("X").shape;
  const StaticText type = context.def().type;
  CheckSomethingIsReduced(type, shape, AxisReduction(shape, axes));
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisReduction reduction(x.shape(run), axes);
    CheckSomethingIsReduced(type, x.shape(run), reduction);
    if (is_max) {
      reduction.Max(x(run), out(run));
    } else {
      reduction.Min(x(run), out(run));
    }
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

void AddExtremeReduction(OpRegistry& registry, bool is_max, OpDef def) {
  const StaticText type = def.type;
  // A largest or smallest element is one of the elements, so nothing is rounded.
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {"X", "Out", OneOfAnyRank("Out@GRAD")}, {"X@GRAD"});
  grad.doc = StrCat("The gradient of ", type,
                    ": dX = dOut at every element that equals its Out, 0 elsewhere.");
  grad.in_place = {{"X", "X@GRAD"}};
  const StaticText grad_type = grad.type;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      type, [is_max]<typename T>(PrepareContext& context) { return Prepare<T>(context, is_max); });
  registry.AddCpuKernels<float, double>(
      grad_type, []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
