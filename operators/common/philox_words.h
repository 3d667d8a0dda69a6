// Many words of a Philox stream at once, computed in vector registers.
//
// Random ops number the words of their stream: word w is word w % 4 of the block at position w / 4
// (framework/tensor/philox.h). Each op documents which words make an element. That depends only on
// the element's index, so any number of threads, and a GPU, draw the same numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "framework/tensor/philox.h"

namespace skiff {

// Writes words [4 * first_block, 4 * (first_block + blocks)) to `words`.
void PhiloxWords(const RandomKey& key, uint64_t first_block, int64_t blocks, uint32_t* words);

// The rule of a dropout for each element: it drops element i if word i is below `threshold`, and
// else multiplies it by `scale`.
struct DropoutRule {
  RandomKey key;
  uint32_t threshold = 0;
  float scale = 1.0f;
};

// Returns the threshold below which a word falls with this probability.
inline uint32_t DropThreshold(double probability) {
  const double words = std::nearbyint(probability * 0x1.0p32);
  return static_cast<uint32_t>(std::min(words, 4294967295.0));
}

// Computes elements [first, first + count) of a float32 dropout. `first` must be a multiple of 4;
// the pointers point to element `first`. Sets mask[i] to 1 for a kept element, else to 0, unless
// `mask` is nullptr. `out` may be `x`.
void DropoutFloat(const DropoutRule& rule, uint64_t first, int64_t count, const float* x,
                  float* out, uint8_t* mask);

// Sets x_grad[i] = mask[i] ? out_grad[i] * scale : 0. `x_grad` may be `out_grad`.
void MaskedScaleFloat(const uint8_t* mask, const float* out_grad, float scale, int64_t count,
                      float* x_grad);

}  // namespace skiff
