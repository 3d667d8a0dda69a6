// CUDA kernels of scale; scale.cc has the formula.
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_values_kernels.h"
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

#include "operators/elementwise/kernels/scale_formula-inl.h"

template <typename T>
struct Scale {
  __device__ T Value(T x) const {
    const T scale = given == nullptr ? factor : *given;
    return bias_first ? ShiftedAndScaled(x, scale, bias) : Scaled(x, scale, bias);
  }

  T factor;
  T bias;
  bool bias_first;
  const T* given;  // ScaleTensor
};

template <typename T>
const char* LaunchScale(const CudaUnaryLaunch& launch) {
  const auto& [factor, bias, bias_after_scale] = launch.numbers;
  using Wide = WideType<T>;
  return cuda_unary::LaunchApply<T>(
      launch, Scale<Wide>{FromFloat<Wide>(factor), FromFloat<Wide>(bias), bias_after_scale == 0,
                          static_cast<const Wide*>(launch.tensors[0])});
}

}  // namespace

void RegisterScaleCuda(OpRegistry& registry) {
  const CudaUnaryFacts facts{.op = {.type = "scale",
                                    .numbers = {{{.name = "scale"},
                                                 {.name = "bias"},
                                                 {.name = "bias_after_scale", .is_bool = true}}}},
                             .tensors = {"ScaleTensor"}};
  AddCudaUnaryKernel(registry, facts, DType::kFloat32, LaunchScale<float>);
  AddCudaUnaryKernel(registry, facts, DType::kFloat64, LaunchScale<double>);
  AddCudaUnaryKernel(registry, facts, DType::kBFloat16, LaunchScale<BFloat16>);
  AddCudaUnaryKernel(registry, facts, DType::kFloat16, LaunchScale<Float16>);
  AddCudaUnaryKernel(registry, facts, DType::kInt32, LaunchScale<int32_t>);
  AddCudaUnaryKernel(registry, facts, DType::kInt64, LaunchScale<int64_t>);
  AddCudaValuesKernels(registry, "scale");
}

}  // namespace skiff
