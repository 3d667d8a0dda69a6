// Random numbers one after the other, of a stream that a seed and a place in it define.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/tensor/philox.h"

namespace skiff::text {

class RandomDraws {
 public:
  explicit RandomDraws(const Philox& philox, uint64_t first_block = 0)
      : philox_(philox), block_(first_block) {}

  // The draws of one sample among many that share a stream: room for two million each.
  static RandomDraws OfSample(const Philox& philox, int64_t sample) {
    return RandomDraws(philox, static_cast<uint64_t>(sample) << 20);
  }

  // Returns a number in [0, count), which is at least 1.
  int64_t Below(int64_t count) {
    return static_cast<int64_t>(Next() % static_cast<uint64_t>(count));
  }
  // Returns a number in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // Brings the elements into a random order (Fisher and Yates).
  template <typename T>
  void Shuffle(std::vector<T>* elements) {
    for (size_t i = elements->size(); i > 1; --i) {
      std::swap((*elements)[i - 1],
                (*elements)[static_cast<size_t>(Below(static_cast<int64_t>(i)))]);
    }
  }

 private:
  // Half a block.
  uint64_t Next() {
    if (half_ == 0) words_ = philox_.At(block_++);
    const size_t first = half_ * size_t{2};
    half_ ^= 1;
    return uint64_t{words_[first]} << 32 | words_[first + 1];
  }

  Philox philox_;
  uint64_t block_;
  Philox::Block words_{};
  size_t half_ = 0;  // of the block, that comes next
};

}  // namespace skiff::text
