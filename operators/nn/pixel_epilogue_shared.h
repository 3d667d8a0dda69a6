// What a convolution of blocked images does to its output pixels before they are written.
#pragma once

namespace skiff {

// max(0, pixel + shift[channel] + addend)
struct PixelEpilogue {
  const float* shift = nullptr;   // by channel, filled up to a whole block; nullptr: no epilogue
  const float* addend = nullptr;  // laid out as the pixels, which it may be; nullptr: none
  bool rectifies = false;
};

}  // namespace skiff
