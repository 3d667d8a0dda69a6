// The words of a Philox stream in bulk, in vector registers.
//
// Random ops number the words of their stream: word w is word w % 4 of the block at position w / 4
// (framework/tensor/philox.h). Which words make an element is said at each op; it depends on the
// element's index alone, so any number of threads, and a GPU, draw the same numbers.
#pragma once

#include <cstdint>

#include "framework/tensor/philox.h"

namespace skiff {

// Writes words [4 * first_block, 4 * (first_block + blocks)) to `words`.
void PhiloxWords(const RandomKey& key, uint64_t first_block, int64_t blocks, uint32_t* words);

// What a dropout does with each element: element i of the tensor is dropped if word i is below
// `threshold`, else multiplied by `scale`.
struct DropoutRule {
  RandomKey key;
  uint32_t threshold = 0;
  float scale = 1.0f;
};

// Elements [first, first + count) of a float32 dropout; `first` is a multiple of 4, the pointers
// are at element `first`. mask[i] becomes 1 for a kept element, else 0; mask may be nullptr. out
// may be x.
void DropoutFloat(const DropoutRule& rule, uint64_t first, int64_t count, const float* x,
                  float* out, uint8_t* mask);

// x_grad[i] = mask[i] ? out_grad[i] * scale : 0. In place allowed.
void MaskedScaleFloat(const uint8_t* mask, const float* out_grad, float scale, int64_t count,
                      float* x_grad);

}  // namespace skiff
