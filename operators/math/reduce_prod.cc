// reduce_prod: Out = the product of X over the axes `dim`, or over all of them.
// Source: Fluid's reduce_prod; dX at an element = dOut times the product of the other elements.
// Fluid computes that as dOut * Out / X, which is NaN where X is 0; here it is right there, too.
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "operators/math/kernels/reduction.h"

namespace skiff {
namespace {

constexpr int64_t kGrainElements = 16384;

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
    const AxisReduction reduction(x.shape(run), axes);
    reduction.Product(x(run), out(run));
  });
}

// Computes the gradient of a product of 0, where dividing by an element isn't possible, from the
// product without zeros and their number. In float64, since a product may also have underflowed to
// 0.
template <typename T>
void SpreadZeroProduct(const AxisReduction& reduction, int64_t output, const T* x, T gradient,
                       T* dx) {
  int64_t zeros = 0;
  double product = 1;
  reduction.ForEachElementOf(output, [&](int64_t i) {
    if (x[i] == 0) {
      ++zeros;
    } else {
      product *= static_cast<double>(x[i]);
    }
  });
  reduction.ForEachElementOf(output, [&](int64_t i) {
    const bool has_other_zeros = zeros > (x[i] == 0 ? 1 : 0);
    const double others = x[i] == 0 ? product : product / static_cast<double>(x[i]);
    dx[i] = has_other_zeros ? T{0} : static_cast<T>(static_cast<double>(gradient) * others);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const In<T> x_input(context, "X");
  const In<T> out_input(context, "Out");
  const In<T> gradient_input(context, "Out@GRAD");
  const Out<T> dx_output(context, "X@GRAD");
  const AxisFlags axes = ReducedAxes(context);
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisReduction reduction(dx_output.shape(run), axes);
    const T* x = x_input(run);
    const T* out = out_input(run);
    const T* gradient = gradient_input(run);
    T* dx = dx_output(run);
    // All outputs by division first, in one pass over memory; then the products of 0 again. Those
    // are rare.
    reduction.ForEachPiece([=](int64_t offset, int64_t size, int64_t first, bool is_one_output) {
      for (int64_t i = 0; i < size; ++i) {
        const int64_t output = is_one_output ? first : first + i;
        dx[offset + i] = gradient[output] * out[output] / x[offset + i];
      }
    });
    if (reduction.reduced_count() == 0) return;
    const int64_t grain = std::max<int64_t>(1, kGrainElements / reduction.reduced_count());
    ParallelFor(reduction.output_count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (out[i] == 0) SpreadZeroProduct(reduction, i, x, gradient[i], dx);
      }
    });
  });
}

}  // namespace

void RegisterReduceProd(OpRegistry& registry) {
  OpDef def = ReductionDef("reduce_prod",
                           "Out = the product of X over the axes `dim`; 1 for no elements. Fluid's "
                           "reduce_prod.");
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"X", "Out", OneOfAnyRank("Out@GRAD")}, {"X@GRAD"});
  grad.doc = "The gradient of reduce_prod: dX = dOut * the product of the other elements.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "reduce_prod", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "reduce_prod_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
