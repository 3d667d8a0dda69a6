// Nested loops over tensors with strides, as CUDA kernels get them: from the index of an iteration
// to the offsets of its elements. A division by a number known at launch is a multiplication.
#pragma once

#include <cstdint>

#include "operators/common/fast_divisor.h"

namespace skiff {

// Loops over kTensors tensors at once.
template <int kTensors>
class CudaLoops {
 public:
  static constexpr int kMaxRank = 9;

  // Appends a loop inside of the others. Its size isn't 0.
  constexpr void Append(int64_t size, const int64_t (&strides)[kTensors]) {
    sizes_[rank_] = size;
    count_ *= size;
    is_small_ = count_ < int64_t{1} << 31;
    if (is_small_) divisors_[rank_] = FastDivisor(size);
    for (int k = 0; k < kTensors; ++k) strides_[rank_][k] = strides[k];
    ++rank_;
  }

  constexpr int rank() const { return rank_; }
  // The number of iterations.
  constexpr int64_t count() const { return count_; }
  constexpr int64_t innermost_size() const { return rank_ == 0 ? 1 : sizes_[rank_ - 1]; }

  // Sets the offsets of iteration `index`.
  constexpr void SetOffsets(int64_t index, int64_t (&offsets)[kTensors]) const {
    for (int k = 0; k < kTensors; ++k) offsets[k] = 0;
    if (rank_ == 0) return;
    if (is_small_) {
      auto rest = static_cast<uint32_t>(index);
      for (int i = rank_ - 1; i > 0; --i) {
        Advance(i, divisors_[i].TakeRemainder(&rest), offsets);
      }
      Advance(0, rest, offsets);
      return;
    }
    for (int i = rank_ - 1; i > 0; --i) {
      const int64_t outer = index / sizes_[i];
      Advance(i, index - outer * sizes_[i], offsets);
      index = outer;
    }
    Advance(0, index, offsets);
  }

 private:
  constexpr void Advance(int loop, int64_t steps, int64_t (&offsets)[kTensors]) const {
    for (int k = 0; k < kTensors; ++k) offsets[k] += steps * strides_[loop][k];
  }

  int rank_ = 0;
  bool is_small_ = true;  // whether all indices are below 2^31
  int64_t count_ = 1;
  int64_t sizes_[kMaxRank] = {};
  FastDivisor divisors_[kMaxRank] = {};
  int64_t strides_[kMaxRank][kTensors] = {};
};

}  // namespace skiff
