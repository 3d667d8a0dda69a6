// CUDA kernels of pow and pow_grad; pow.cc has the formulas.
#include <cmath>

#include "framework/op/registry.h"
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

// The exponent: a number, or a tensor of one.
struct Factor {
  explicit Factor(const CudaUnaryLaunch& launch)
      : number(launch.numbers[0]), given(launch.tensors[0]), dtype(launch.tensor_dtypes[0]) {}

  template <typename T>
  __device__ T As() const {
    if (given == nullptr) return static_cast<T>(number);
    if (dtype == DType::kInt32) return static_cast<T>(*static_cast<const int32_t*>(given));
    if (dtype == DType::kInt64) return static_cast<T>(*static_cast<const int64_t*>(given));
    if (dtype == DType::kFloat64) return static_cast<T>(*static_cast<const double*>(given));
    return static_cast<T>(*static_cast<const float*>(given));
  }

  float number;
  const void* given;
  DType dtype;
};

template <typename T>
__device__ T Power(T x, T exponent) {
  if (exponent == T{2}) return x * x;
  if (exponent == T{1}) return x;
  return std::pow(x, exponent);
}

struct Pow {
  template <typename T>
  __device__ T Value(T x) const {
    return Power(x, factor.As<T>());
  }

  template <typename T>
  __device__ T Gradient(T x, T dout) const {
    const T exponent = factor.As<T>();
    // X^-1 at X = 0 would make the gradient NaN.
    return exponent == T{0} ? T{0} : dout * exponent * Power(x, exponent - T{1});
  }

  Factor factor;
};

template <typename T>
const char* LaunchPow(const CudaUnaryLaunch& launch) {
  return cuda_unary::LaunchApply<T>(launch, Pow{Factor(launch)});
}

template <typename T>
const char* LaunchPowGrad(const CudaUnaryLaunch& launch) {
  return cuda_unary::LaunchApplyGradient<T>(launch, Pow{Factor(launch)});
}

}  // namespace

void RegisterPowCuda(OpRegistry& registry) {
  const CudaUnaryFacts facts{
      .op = {.type = "pow", .grad_reads = "X", .numbers = {{{.name = "factor"}}}},
      .tensors = {"FactorTensor"}};
  AddCudaUnaryKernel(registry, facts, DType::kFloat32, LaunchPow<float>);
  AddCudaUnaryKernel(registry, facts, DType::kFloat64, LaunchPow<double>);
  AddCudaUnaryGradKernel(registry, facts, DType::kFloat32, LaunchPowGrad<float>);
  AddCudaUnaryGradKernel(registry, facts, DType::kFloat64, LaunchPowGrad<double>);
}

}  // namespace skiff
