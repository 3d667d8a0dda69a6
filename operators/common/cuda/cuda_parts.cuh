// The sum of matrices that lie one after the other, such as the parts of a long sum.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/common/half.h"

namespace skiff {

// A vector that is added to each row of a matrix.
template <typename T>
struct RowBias {
  const T* values = nullptr;  // nullptr: nothing is added
  int64_t columns = 1;
};

template <typename T>
__global__ void AddParts(const WideType<T>* parts, int64_t count, int64_t elements,
                         WideType<T> beta, RowBias<T> bias, T* c) {
  using Wide = WideType<T>;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    // With beta = 0, NaN in C doesn't matter.
    Wide sum = beta == Wide(0) ? Wide(0) : beta * Widened(c[i]);
    for (int64_t part = 0; part < count; ++part) sum += parts[part * elements + i];
    if (bias.values != nullptr) sum += Widened(bias.values[Divide(i, bias.columns).rest]);
    c[i] = Rounded<T>(sum);
  }
}

// Adds `count` parts, one after the other, of `elements` elements each: c = beta · c + their sum +
// bias. The parts of half are float32, and only what becomes of c is rounded. There are elements.
// `what` names the work in an Error.
template <typename T>
void AddPartsOnDevice(cudaStream_t stream, const char* what, const WideType<T>* parts,
                      int64_t count, int64_t elements, WideType<T> beta, T* c,
                      const RowBias<T>& bias = {}) {
  AddParts<T><<<CudaBlocksOfThreads(elements), kCudaThreads, 0, stream>>>(parts, count, elements,
                                                                          beta, bias, c);
  CheckLaunch(what);
}

}  // namespace skiff
