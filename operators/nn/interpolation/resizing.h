// The geometry of resized images: which pixels of the input make a pixel of the output.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "framework/op/op_context.h"
#include "operators/nn/interpolation/interpolation_op.h"
#include "operators/nn/kernels/image_window.h"

namespace skiff {

struct Resizing {
  Interpolation method = Interpolation::kNearest;
  ImageDims input;
  ImageDims output;
  // The ratio of output to input pixels, from the attribute. 0: the ratio of the sizes.
  std::array<double, 2> scale{};
  bool align_corners = true;
  int64_t align_mode = 1;
  ChannelOrder order = ChannelOrder::kFirst;
};

// Returns the resizing of an op or its gradient op, by slot X and the attributes. Dims of -1 stay
// unknown. Throws Error for attributes that don't fit.
Resizing ParseResizing(const OpContext& context, const InterpolationOp& op);

// A resizing along an axis.
struct ResizedAxis {
  int64_t inputs = 0;
  int64_t outputs = 0;
  double ratio = 0;  // input pixels from one pixel of the output to the next
  bool align_corners = true;
  bool by_centers = false;  // positions are those of centers of pixels
};

ResizedAxis ResizedAxisOf(const Resizing& resizing, size_t axis);

// A row (or column) of the output is (1 - weight) · low + weight · high of the input.
struct Blend {
  int64_t low = 0;
  int64_t high = 0;
  double weight = 0;
};

constexpr Blend NearestOf(const ResizedAxis& axis, int64_t pixel) {
  // The position is float32 and its rounding float64, as in Fluid, so that the same pixel is the
  // nearest.
  const float position = static_cast<float>(axis.ratio) * static_cast<float>(pixel);
  const auto nearest =
      static_cast<int64_t>(static_cast<double>(position) + (axis.align_corners ? 0.5 : 0.0));
  const int64_t place = nearest < axis.inputs - 1 ? nearest : axis.inputs - 1;
  return {.low = place, .high = place};
}

constexpr Blend BilinearOf(const ResizedAxis& axis, int64_t pixel) {
  double position = axis.ratio * static_cast<double>(pixel);
  if (axis.by_centers) {
    position = axis.ratio * (static_cast<double>(pixel) + 0.5) - 0.5;
    if (position < 0) position = 0;
  }
  const int64_t last = axis.inputs - 1;
  const auto floor = static_cast<int64_t>(position);
  Blend blend;
  blend.low = floor < last ? floor : last;
  blend.high = blend.low < last ? blend.low + 1 : last;
  // At the end of the input, both indices are the last pixel, and the weight is of no effect.
  blend.weight = blend.high == blend.low ? 0 : position - static_cast<double>(blend.low);
  return blend;
}

constexpr Blend BlendOf(const ResizedAxis& axis, Interpolation method, int64_t pixel) {
  return method == Interpolation::kNearest ? NearestOf(axis, pixel) : BilinearOf(axis, pixel);
}

}  // namespace skiff
