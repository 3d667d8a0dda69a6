// The positions of elements in batches of images and volumes, which have either channel order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "framework/base/error.h"
#include "operators/common/fast_divisor.h"

namespace skiff {

// Kernels count elements in 32 bits. A larger batch is taken in several launches.
inline constexpr int64_t kMaxCudaElements = (int64_t{1} << 31) - 1;

// Returns a divisor for the indices of elements. Throws Error unless it is from 1 to
// kMaxCudaElements.
inline FastDivisor DivisorOf(int64_t divisor) {
  SKIFF_ENFORCE(divisor >= 1 && divisor <= kMaxCudaElements, kOutOfRange, "a divisor of ", divisor,
                ", expected 1 to ", kMaxCudaElements);
  return FastDivisor(divisor);
}

// An element of a batch: image, channel, and the place along depth, height and width.
struct CudaElement {
  uint32_t n;
  uint32_t c;
  uint32_t place[3];
};

// The images or volumes of a launch.
class CudaVolume {
 public:
  // An image without elements is as good as one of a single element, as nothing visits it.
  CudaVolume(int64_t channels, const std::array<int64_t, 3>& size, bool channels_last)
      : is_last_(channels_last) {
    const int64_t points = size[0] * size[1] * size[2];
    if (channels * points == 0) return;
    channels_ = DivisorOf(channels);
    for (size_t axis = 0; axis < 3; ++axis) sizes_[axis] = DivisorOf(size[axis]);
    const int64_t step = channels_last ? channels : 1;
    image_ = static_cast<uint32_t>(channels * points);
    channel_ = static_cast<uint32_t>(channels_last ? 1 : points);
    steps_[0] = static_cast<uint32_t>(size[1] * size[2] * step);
    steps_[1] = static_cast<uint32_t>(size[2] * step);
    steps_[2] = static_cast<uint32_t>(step);
  }

  // Returns what element `index` of the launch is.
  __device__ CudaElement At(uint32_t index) const {
    CudaElement at;
    if (is_last_) at.c = channels_.TakeRemainder(&index);
    for (int axis = 2; axis >= 0; --axis) at.place[axis] = sizes_[axis].TakeRemainder(&index);
    if (!is_last_) at.c = channels_.TakeRemainder(&index);
    at.n = index;
    return at;
  }

  // Returns the index of the first element of a channel of an image.
  __device__ uint32_t Channel(uint32_t n, uint32_t c) const { return n * image_ + c * channel_; }
  // The distance between neighbours along an axis.
  __device__ uint32_t step(int axis) const { return steps_[axis]; }

 private:
  bool is_last_;
  FastDivisor channels_;
  FastDivisor sizes_[3];
  uint32_t image_ = 0;
  uint32_t channel_ = 0;
  uint32_t steps_[3] = {};
};

// Calls launch(first image, images) for the parts of a batch that a launch can count, whose images
// have up to `elements` elements.
template <typename Launch>
void ForEachCudaPart(int64_t batch, int64_t elements, const Launch& launch) {
  const int64_t images = std::max<int64_t>(kMaxCudaElements / std::max<int64_t>(elements, 1), 1);
  for (int64_t n = 0; n < batch; n += images) launch(n, std::min(images, batch - n));
}

}  // namespace skiff
