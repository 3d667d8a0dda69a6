// Filling a tensor with one value on CUDA. Elements are words of 1, 2, 4 or 8 bytes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "framework/base/dtype.h"
#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_grid.h"
#include "operators/common/cuda/cuda_vector_loop.cuh"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/tensor/kernels/cuda_dtypes.h"

namespace skiff {
namespace cuda_fill {

// `given`: where the value is, unless it is nullptr.
template <typename Word>
__global__ void __launch_bounds__(kCudaThreads)
    Fill(Word value, const uint64_t* given, Word* out, int64_t count, bool is_aligned) {
  constexpr int kSize = kVectorSize<Word>;
  if (given != nullptr) value = static_cast<Word>(*given);
  CudaVector<Word, kSize> vector;
#pragma unroll
  for (int j = 0; j < kSize; ++j) vector.values[j] = value;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    StoreVector(vector, length, is_whole, out + i);
  });
}

template <typename Word>
void LaunchFill(const KernelContext& run, uint64_t value, const uint64_t* given, Tensor* out) {
  const int64_t count = out->element_count();
  auto* words = static_cast<Word*>(out->raw_data());
  const CudaGrid grid = GridOfVectors(run, count, sizeof(Word));
  Fill<Word><<<grid.blocks, kCudaThreads, 0, static_cast<cudaStream_t>(grid.stream)>>>(
      static_cast<Word>(value), given, words, count, IsAlignedTo(words, 16));
}

}  // namespace cuda_fill

// Sets all elements of `out` to those bits (FillBits), or to those at `given` in the device's
// memory, unless it is nullptr.
inline void FillOnDevice(const KernelContext& run, uint64_t bits, const uint64_t* given,
                         Tensor* out) {
  if (out->element_count() == 0) return;
  switch (SizeOf(out->dtype())) {
    case 1:
      cuda_fill::LaunchFill<uint8_t>(run, bits, given, out);
      break;
    case 2:
      cuda_fill::LaunchFill<uint16_t>(run, bits, given, out);
      break;
    case 4:
      cuda_fill::LaunchFill<uint32_t>(run, bits, given, out);
      break;
    default:
      cuda_fill::LaunchFill<uint64_t>(run, bits, given, out);
  }
  const char* failure = LaunchFailure();
  SKIFF_ENFORCE(failure == nullptr, kIo, "fill: launch failed: ", failure);
}

}  // namespace skiff
