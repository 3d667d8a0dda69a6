// The geometry of a pooling, and its loops on channel-blocked images.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/op/op_context.h"
#include "operators/common/cpu/float_loops.h"
#include "operators/nn/kernels/image_window.h"

namespace skiff {

// The pixels [begin, end) of the input that a window covers along an axis. `extent` also counts the
// padding that the window covers, as far as Fluid counts it for averages: up to the input's size
// plus the padding in front.
struct WindowSpan {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t extent = 0;
};

// Windows along an axis: of `kernel` pixels from -padding on in steps of `stride`; adaptive, window
// o of n covers [floor(o * inputs / n), ceil((o + 1) * inputs / n)).
struct AxisWindows {
  int64_t inputs = 0;
  int64_t outputs = 0;
  bool adaptive = false;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  // Whether the input has no pixels: then `inputs` may be any number, and all spans are empty.
  bool is_empty = false;
};

// Returns the windows of a pooling of images or volumes along an axis.
template <typename Geometry>
AxisWindows WindowsAlong(const Geometry& pooling, size_t axis) {
  return {.inputs = pooling.input.size[axis],
          .outputs = pooling.output.size[axis],
          .adaptive = pooling.adaptive,
          .kernel = pooling.window.kernel[axis],
          .stride = pooling.window.stride[axis],
          .padding = pooling.window.pad_begin[axis],
          .is_empty = std::ranges::count(pooling.input.size, 0) > 0};
}

// Warns if the first or the last window covers nothing but padding, as Fluid's formula for the
// number of windows allows. `axis` is "height", "width" or "depth".
void WarnOfEmptyWindows(const AxisWindows& windows, std::string_view axis);

// Returns the span of each window along an axis. Throws Error if there are more windows than pixels
// and millions of them: that is a mistake in an attribute, and the table might take all memory.
std::vector<WindowSpan> WindowSpans(const OpContext& context, const AxisWindows& windows);

struct Pooling {
  ImageDims input;
  ImageDims output;
  Window window;          // unused if `adaptive`
  bool is_max = false;    // else the average
  bool exclusive = true;  // averages count the pixels on the input only
  bool adaptive = false;  // windows of several sizes
  ChannelOrder order = ChannelOrder::kFirst;
  // One for each output row and column; empty while the input's size is unknown.
  std::vector<WindowSpan> rows;
  std::vector<WindowSpan> columns;

  // Returns whether some window covers nothing but padding.
  bool has_empty_window() const;
  // Returns the number that an average over these spans divides by.
  int64_t Divisor(const WindowSpan& row, const WindowSpan& column) const {
    if (exclusive) return (row.end - row.begin) * (column.end - column.begin);
    return row.extent * column.extent;
  }
};

// Returns the greater number, or NaN if either is NaN: the maximum of a window with a NaN is NaN.
template <typename T>
constexpr T MaxOrNan(T best, T value) {
  return best > value || best != best ? best : value;
}

// Returns whether a pixel takes the place of the largest before it: a greater number or the first
// NaN does.
template <typename T>
constexpr bool IsAboveMaximum(T value, T best) {
  return best == best && !(value <= best);
}

// Returns whether a pixel takes the gradient of a window whose maximum is `best`, unless an earlier
// pixel took it. If there are NaNs, the first of them is the maximum.
template <typename T>
constexpr bool IsMaximum(T value, T best) {
  return value == best || value != value;
}

// Return the pooling of pool2d, or of max_pool2d_with_index, or its gradient op, by slot X and the
// attributes. Adaptive pooling with windows of one size becomes plain pooling. They throw Error for
// attributes that don't fit. They leave `rows` and `columns` empty: shape rules meet images of any
// size, even with tables too large for any memory.
Pooling ParsePoolingExtents(const OpContext& context);
Pooling ParseIndexedPooling(const OpContext& context);
// Returns the pooling with `rows` and `columns`.
Pooling WithSpans(const OpContext& context, Pooling pooling);
inline Pooling ParsePooling(const OpContext& context) {
  return WithSpans(context, ParsePoolingExtents(context));
}

// The loops of one instruction set over planes [H, W, block] of images blocked by 8 or 16, of
// float32 or half. No window may be empty.
template <typename T>
struct BlockedPoolingLoops {
  // Pools one plane.
  void (*forward)(const Pooling& pooling, int64_t block, const T* input, T* output) = nullptr;
  // Computes the gradient of a plane of the input. The first maximum of a window (IsMaximum), row
  // by row, takes its gradient. Averages read neither `input` nor `output`.
  void (*backward)(const Pooling& pooling, int64_t block, const T* input, const T* output,
                   const T* output_gradient, float* input_gradient) = nullptr;
};
FloatLoops<BlockedPoolingLoops> BlockedPooling();

}  // namespace skiff
