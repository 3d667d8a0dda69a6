// reduce_sum: Out = the sum of X over the axes `dim`, or over all of them; int64 for int32 and
// bool. Source: Fluid's reduce_sum; dX at an element = dOut at the sum that it was added to. A full
// sum without keep_dim is a scalar (rank 0).
#include <cstdint>
#include <type_traits>
#include <utility>

#include "framework/op/grad.h"
#include "operators/math/kernels/reduction.h"

namespace skiff {
namespace {

template <typename T>
using OutOf = std::conditional_t<std::is_integral_v<T>, int64_t, T>;

void Infer(OpContext& context) {
  const DType dtype = context.Input("X").dtype;
  const bool widens = dtype == DType::kInt32 || dtype == DType::kBool;
  InferReduction(context, widens ? DType::kInt64 : dtype);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const In<T> x(context, "X");
  const Out<OutOf<T>> out(context, "Out");
  return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
    const AxisReduction reduction(x.shape(run), axes);
    reduction.Sum(x(run), out(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
    const AxisReduction reduction(dx.shape(run), axes);
    reduction.Broadcast(gradient(run), T{1}, dx(run));
  });
}

}  // namespace

void RegisterReduceSum(OpRegistry& registry) {
  OpDef def = ReductionDef("reduce_sum",
                           "Out = the sum of X over the axes `dim`; int64 for int32 and bool. "
                           "Fluid's reduce_sum.");
  def.infer = Infer;
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {ForShape("X"), OneOfAnyRank("Out@GRAD")}, {"X@GRAD"});
  grad.doc = "The gradient of reduce_sum: dX = dOut, broadcast over the summed axes.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t, bool>(
      "reduce_sum", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>("reduce_sum_grad", []<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  });
}

}  // namespace skiff
