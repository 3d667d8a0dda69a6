// mean: Out = the sum of all elements of X over their number, a scalar (rank 0).
// Source: Fluid's mean; dX = dOut / number of elements.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/cpu/reduce.h"

namespace skiff {
namespace {

void CheckHasElements(const Shape& x) {
  SKIFF_ENFORCE(x.element_count() > 0, kInvalidArgument, "mean: X of shape ", x,
                " has no elements, expected at least one");
}

const TensorMeta& CheckedX(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  if (x.shape.is_known()) CheckHasElements(x.shape);
  return x;
}

void Infer(OpContext& context) { context.SetOutput("Out", Shape{}, CheckedX(context).dtype); }

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = x.count(run);
    CheckHasElements(x.shape(run));
    const double sum = Sum(x(run), count);
    *out(run) = static_cast<T>(sum / static_cast<double>(count));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Shape& shape = dx.shape(run);
    const T factor = T{1} / static_cast<T>(shape.element_count());
    // A reduction over all axes: its Broadcast writes the same value to all elements, by all
    // threads.
    AxisFlags all{};
    std::fill_n(all.begin(), shape.rank(), true);
    AxisReduction(shape, all).Broadcast(gradient(run), factor, dx(run));
  });
}

}  // namespace

void RegisterMean(OpRegistry& registry) {
  OpDef def = {.type = "mean",
               .doc = "Out = the mean of all elements of X. Fluid's mean.",
               .inputs = {{.name = "X", .doc = "Of any shape with at least one element."}},
               .outputs = {{.name = "Out", .doc = "The mean, of rank 0."}},
               .infer = Infer};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {ForShape("X"), OneOfAnyRank("Out@GRAD")}, {"X@GRAD"});
  grad.doc = "The gradient of mean: dX = dOut / number of elements of X.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "mean", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "mean_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
