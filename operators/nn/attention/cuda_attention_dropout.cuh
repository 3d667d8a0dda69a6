// Which weights of attention are dropped, on a device: head_attention.h's WeightDropout.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "framework/tensor/philox.h"
#include "operators/common/cuda/cuda_philox.cuh"

namespace skiff {

// Calls visit(i, word) with word first + i of the stream for i in [0, kCount), at most 4.
template <int kCount, class Visit>
__device__ void ForEachWord(const RandomKey& key, uint64_t first, const Visit& visit) {
  const DevicePhilox numbers(key);
  DevicePhilox::Block block = numbers.At(first / 4);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const uint64_t word = first + static_cast<uint64_t>(i);
    if (i > 0 && word % 4 == 0) block = numbers.At(word / 4);
    // Not by a computed index, for which the words would have to leave their registers.
    const auto at = static_cast<uint32_t>(word % 4);
    const uint32_t low = at == 0 ? block.words[0] : block.words[1];
    const uint32_t high = at == 2 ? block.words[2] : block.words[3];
    visit(i, at < 2 ? low : high);
  }
}

}  // namespace skiff
