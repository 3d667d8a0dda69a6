// Which weights of attention are dropped, on a device: attention.h's WeightDropout.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "framework/tensor/philox.h"

namespace skiff {

// Four words of a Philox stream (framework/tensor/philox.h).
struct PhiloxFour {
  uint32_t words[4];

  __device__ PhiloxFour(const RandomKey& key, uint64_t position)
      : words{static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
              static_cast<uint32_t>(key.op_id), static_cast<uint32_t>(key.step)} {
    uint32_t k0 = static_cast<uint32_t>(key.seed);
    uint32_t k1 = static_cast<uint32_t>(key.seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * words[0];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * words[2];
      words[0] = static_cast<uint32_t>(p1 >> 32) ^ words[1] ^ k0;
      words[1] = static_cast<uint32_t>(p1);
      words[2] = static_cast<uint32_t>(p0 >> 32) ^ words[3] ^ k1;
      words[3] = static_cast<uint32_t>(p0);
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
  }

  __device__ uint32_t At(uint32_t i) const {
    return i < 2 ? (i == 0 ? words[0] : words[1]) : (i == 2 ? words[2] : words[3]);
  }
};

// Calls visit(i, word) with word first + i of the stream for i in [0, kCount), at most 4.
template <int kCount, class Visit>
__device__ void ForEachWord(const RandomKey& key, uint64_t first, const Visit& visit) {
  PhiloxFour four(key, first / 4);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const uint64_t word = first + static_cast<uint64_t>(i);
    if (i > 0 && word % 4 == 0) four = PhiloxFour(key, word / 4);
    visit(i, four.At(static_cast<uint32_t>(word % 4)));
  }
}

}  // namespace skiff
