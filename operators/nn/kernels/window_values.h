// The values that windows of images and of volumes compute from their attributes. A window has
// arrays kernel, stride, dilation, pad_begin and pad_end, with a number for each axis.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace skiff {

// A program file may hold 64-bit values. Within 32 bits, sums and products of a window's numbers
// don't overflow.
inline constexpr int64_t kLargestWindowValue = std::numeric_limits<int32_t>::max();

// Returns whether all values are at least `least` and at most kLargestWindowValue.
inline bool AreWindowValues(const std::vector<int64_t>& values, int64_t least) {
  return std::ranges::all_of(
      values, [least](int64_t value) { return value >= least && value <= kLargestWindowValue; });
}

// Sets the paddings of `count` axes from axis `first` on. `values` has one for each axis, or two:
// before and after.
template <typename Window>
void SetPaddings(const std::vector<int64_t>& values, size_t first, size_t count, Window* window) {
  const bool symmetric = values.size() == count;
  for (size_t i = 0; i < count; ++i) {
    window->pad_begin[first + i] = values[symmetric ? i : 2 * i];
    window->pad_end[first + i] = values[symmetric ? i : 2 * i + 1];
  }
}

// Sets the paddings of Fluid's SAME: the output has ceil(input / stride) points along an axis, and
// an odd padding has its extra point at the end. An axis of unknown size (-1) of input or kernel
// stays as it is. The dilation becomes 1.
template <typename Window, typename Extents>
void PadToSame(const Extents& input_size, Window* window) {
  window->dilation.fill(1);
  for (size_t axis = 0; axis < input_size.size(); ++axis) {
    if (input_size[axis] < 0 || window->kernel[axis] < 0) continue;
    const int64_t stride = window->stride[axis];
    const int64_t outputs = (input_size[axis] + stride - 1) / stride;
    const int64_t needed = (outputs - 1) * stride + window->kernel[axis] - input_size[axis];
    const int64_t padding = std::max<int64_t>(needed, 0);
    window->pad_begin[axis] = padding / 2;
    window->pad_end[axis] = padding - padding / 2;
  }
}

}  // namespace skiff
