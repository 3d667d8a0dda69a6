#include <cuda_runtime.h>

#include "tests/build/device_sum.h"

namespace skiff::build_test {
namespace {

__global__ void Sum(const float* values, int count, float* sum) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) atomicAdd(sum, values[i]);
}

}  // namespace

float SumOnDevice(const std::vector<float>& values) {
  float* device = nullptr;
  const int count = static_cast<int>(values.size());
  float sum = 0;
  // The sum is stored after the values.
  cudaMalloc(&device, (count + 1) * sizeof(float));
  cudaMemcpy(device, values.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(device + count, 0, sizeof(float));
  Sum<<<1, 128>>>(device, count, device + count);
  cudaMemcpy(&sum, device + count, sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(device);
  return sum;
}

}  // namespace skiff::build_test
