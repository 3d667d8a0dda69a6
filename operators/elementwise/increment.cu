// CUDA kernels of increment: one element.
#include "framework/op/registry.h"
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

template <typename T>
__global__ void Increment(const T* x, T step, T* out) {
  *out = WrappingAdd(*x, step);
}

template <typename T>
const char* LaunchIncrement(const CudaUnaryLaunch& launch) {
  Increment<T><<<1, 1, 0, static_cast<cudaStream_t>(launch.grid.stream)>>>(
      static_cast<const T*>(launch.from), FromFloat<T>(launch.numbers[0]),
      static_cast<T*>(launch.to));
  return LaunchFailure();
}

}  // namespace

void RegisterIncrementCuda(OpRegistry& registry) {
  const auto add = [&](DType dtype, CudaUnaryLauncher launcher) {
    AddCudaUnaryKernel(registry, {.op = {.type = "increment", .numbers = {{{.name = "step"}}}}},
                       dtype, launcher);
  };
  add(DType::kFloat32, LaunchIncrement<float>);
  add(DType::kFloat64, LaunchIncrement<double>);
  add(DType::kInt32, LaunchIncrement<int32_t>);
  add(DType::kInt64, LaunchIncrement<int64_t>);
}

}  // namespace skiff
