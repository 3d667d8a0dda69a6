// The sum of matrices that lie one after the other, such as the parts of a long sum.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_launch.h"

namespace skiff {

// A vector that is added to each row of a matrix.
template <typename T>
struct RowBias {
  const T* values = nullptr;  // nullptr: nothing is added
  int64_t columns = 1;
};

template <typename T>
__global__ void AddParts(const T* parts, int64_t count, int64_t elements, T beta, RowBias<T> bias,
                         T* c) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    // With beta = 0, NaN in C doesn't matter.
    T sum = beta == T(0) ? T(0) : beta * c[i];
    for (int64_t part = 0; part < count; ++part) sum += parts[part * elements + i];
    if (bias.values != nullptr) sum += bias.values[Divide(i, bias.columns).rest];
    c[i] = sum;
  }
}

// Adds `count` parts, one after the other, of `elements` elements each: c = beta · c + their sum +
// bias. There are elements. `what` names the work in an Error.
template <typename T>
void AddPartsOnDevice(cudaStream_t stream, const char* what, const T* parts, int64_t count,
                      int64_t elements, T beta, T* c, const RowBias<T>& bias = {}) {
  AddParts<T><<<CudaBlocksOfThreads(elements), kCudaThreads, 0, stream>>>(parts, count, elements,
                                                                          beta, bias, c);
  CheckLaunch(what);
}

}  // namespace skiff
