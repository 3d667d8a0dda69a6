// CUDA kernels of logsumexp and logsumexp_grad; logsumexp.cc has the formulas.
#include <cmath>
#include <limits>

#include "operators/common/cpu/array_reduction.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/math/kernels/reduction.h"

namespace skiff {
namespace {

constexpr ReductionAttrNames kLogsumexpNames = {.dims = "axis", .keep_dim = "keepdim"};

// The largest element so far, and the sum of exp(x - max), in one pass. NaN in either stays.
template <typename T>
struct LogsumexpCarry {
  T max;
  SumOf<T> sum;
};

template <typename T>
struct LogsumexpRule {
  using Carry = LogsumexpCarry<T>;
  static __device__ Carry Identity() { return {-std::numeric_limits<T>::infinity(), 0}; }
  static __device__ Carry Join(const Carry& a, const Carry& b) {
    // Equal infinities have no difference.
    if (a.max == b.max) return {a.max, a.sum + b.sum};
    if (a.max > b.max) return {a.max, a.sum + b.sum * std::exp(b.max - a.max)};
    return {b.max, b.sum + a.sum * std::exp(a.max - b.max)};
  }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    *carry = Join(*carry, {x[place], 1});
  }
  __device__ void Finish(int64_t output, const Carry& carry) const {
    out[output] = carry.max + static_cast<T>(std::log(carry.sum));
  }

  const T* x;
  T* out;
};

// dx may be x.
template <typename T>
struct LogsumexpSlope {
  __device__ void operator()(int64_t i) const {
    const int64_t output = output_of(i);
    const T sum = out[output];
    const T shift = sum == -std::numeric_limits<T>::infinity() ? T{0} : sum;
    dx[i] = dout[output] * std::exp(x[i] - shift);
  }

  CudaOutputOf output_of;
  const T* x;
  const T* out;
  const T* dout;
  T* dx;
};

}  // namespace

void RegisterLogsumexpCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "logsumexp", [=]<typename T>(PrepareContext& context) {
    using Rule = LogsumexpRule<T>;
    const CudaFold<Rule> fold(context, context.Input("X").shape.element_count());
    const In<T> x(context, "X");
    const Out<T> out(context, "Out");
    return MakeRowsKernel(
        [=, axes = ReducedAxes(context, kLogsumexpNames)](const KernelContext& run) {
          fold.Run(run, "logsumexp", CudaFoldView(x.shape(run), axes), Rule{x(run), out(run)});
        });
  });
  AddCudaKernels<float, double>(
      registry, "logsumexp_grad", [=]<typename T>(PrepareContext& context) {
        const In<T> x(context, "X");
        const In<T> out(context, "Out");
        const In<T> gradient(context, "Out@GRAD");
        const Out<T> dx(context, "X@GRAD");
        return MakeRowsKernel(
            [=, axes = ReducedAxes(context, kLogsumexpNames)](const KernelContext& run) {
              const Shape& shape = dx.shape(run);
              ForEachOnDevice(run, "logsumexp_grad", shape.element_count(),
                              LogsumexpSlope<T>{CudaOutputOf(shape, axes), x(run), out(run),
                                                gradient(run), dx(run)});
            });
      });
}

}  // namespace skiff
