// CUDA kernels of logical_not.
#include <cstdint>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

template <typename T>
__global__ void __launch_bounds__(kCudaThreads) Not(const T* x, bool* out, int64_t count) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    out[i] = x[i] == T{0};
  }
}

template <typename T>
const char* LaunchNot(const CudaUnaryLaunch& launch) {
  Not<T><<<launch.grid.blocks, kCudaThreads, 0, static_cast<cudaStream_t>(launch.grid.stream)>>>(
      static_cast<const T*>(launch.from), static_cast<bool*>(launch.to), launch.count);
  return LaunchFailure();
}

}  // namespace

void RegisterLogicalNotCuda(OpRegistry& registry) {
  const auto add = [&](DType dtype, CudaUnaryLauncher launcher) {
    AddCudaUnaryKernel(registry, {.op = {.type = "logical_not"}}, dtype, launcher);
  };
  // A bool is a byte that is 0 or 1.
  add(DType::kBool, LaunchNot<uint8_t>);
  add(DType::kUint8, LaunchNot<uint8_t>);
  add(DType::kInt32, LaunchNot<int32_t>);
  add(DType::kInt64, LaunchNot<int64_t>);
  add(DType::kFloat32, LaunchNot<float>);
  add(DType::kFloat64, LaunchNot<double>);
}

}  // namespace skiff
