// Image batches, for the float64 references of convolution and pooling.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Top, bottom, left, right.
struct Padding {
  int64_t top = 0;
  int64_t bottom = 0;
  int64_t left = 0;
  int64_t right = 0;
};

struct Pair {
  int64_t height = 1;
  int64_t width = 1;
};

// The shape of a batch whose dims are given as N, C, H, W.
inline Shape ImageShape(const Shape& nchw, bool channels_last) {
  if (!channels_last) return nchw;
  return {nchw[0], nchw[2], nchw[3], nchw[1]};
}

// Reads and writes pixels by N, C, H, W, however they are stored.
class ImageView {
 public:
  ImageView(Array* array, bool channels_last) : array_(array), channels_last_(channels_last) {}

  int64_t batch() const { return array_->shape[0]; }
  int64_t channels() const { return array_->shape[channels_last_ ? 3 : 1]; }
  int64_t height() const { return array_->shape[channels_last_ ? 1 : 2]; }
  int64_t width() const { return array_->shape[channels_last_ ? 2 : 3]; }
  bool contains(int64_t y, int64_t x) const {
    return y >= 0 && y < height() && x >= 0 && x < width();
  }
  double& at(int64_t n, int64_t c, int64_t y, int64_t x) const {
    const int64_t index = channels_last_ ? ((n * height() + y) * width() + x) * channels() + c
                                         : ((n * channels() + c) * height() + y) * width() + x;
    return array_->values[static_cast<size_t>(index)];
  }

 private:
  Array* array_;
  bool channels_last_;
};

inline Array Zeros(const Shape& shape) {
  return Values(shape, std::vector<double>(static_cast<size_t>(shape.element_count()), 0.0));
}

}  // namespace skiff::harness
