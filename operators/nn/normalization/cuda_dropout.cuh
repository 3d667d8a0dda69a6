// Which elements a dropout drops, on CUDA: operators/common/dropout_settings.h has the rule, and
// framework/tensor/philox.h the numbers.
#pragma once

#include <cstdint>

#include "framework/tensor/philox.h"
#include "operators/common/cuda/cuda_philox.cuh"
#include "operators/common/dropout_settings.h"

namespace skiff {

template <int kCount>
struct CudaDropped {
  bool at[kCount];
};

// The dropout of a run.
struct CudaDropout {
  CudaDropout(const DropoutSettings& settings, const KernelContext& run)
      : draws(settings.draws()),
        drops_all(settings.drops_all()),
        threshold(settings.threshold()),
        key(settings.KeyOf(run)) {}

  // Returns which of the elements [first, first + kCount) are dropped. kCount is 1, 2 or 4, and
  // `first` a multiple of kCount, so that one block has all words.
  template <int kCount>
  __device__ CudaDropped<kCount> Of(int64_t first) const {
    static_assert(kCount == 1 || kCount == 2 || kCount == 4);
    CudaDropped<kCount> dropped;
#pragma unroll
    for (int k = 0; k < kCount; ++k) dropped.at[k] = drops_all;
    if (!draws) return dropped;
    const auto index = static_cast<uint64_t>(first);
    const DevicePhilox::Block block = DevicePhilox(key).At(index / 4);
#pragma unroll
    for (int word = 0; word < 4; ++word) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        // Not by a computed index, for which the words would have to leave their registers.
        if (index % 4 + k == word) dropped.at[k] = block.words[word] < threshold;
      }
    }
    return dropped;
  }

  bool draws;  // drops element i if word i of the key's stream is below `threshold`
  bool drops_all;
  uint32_t threshold;
  RandomKey key;
};

}  // namespace skiff
