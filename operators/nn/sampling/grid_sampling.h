// The geometry of grid_sampler: which elements of an image or a volume make the value at a place
// between them.
//
// A place is sampled along each axis for itself: a few taps, each an index with a weight. The value
// at the place is the sum over all combinations of taps, whose weights are products.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "framework/op/op_context.h"
#include "operators/nn/kernels/volume_window.h"

namespace skiff {

enum class SamplingMode { kNearest, kLinear, kCubic };
enum class SamplingPadding { kZeros, kBorder, kReflection };

struct GridSampling {
  VolumeAxes axes = VolumeAxes::kImage;
  VolumeDims input;
  VolumeDims output;
  SamplingMode mode = SamplingMode::kLinear;
  SamplingPadding padding = SamplingPadding::kZeros;
  bool align_corners = true;
};

// Returns the sampling of grid_sampler or its gradient op, by the slots X and Grid and the
// attributes. Dims of -1 stay unknown. Throws Error for shapes and attributes that don't fit.
GridSampling ParseGridSampling(const OpContext& context);
// Throws Error unless X has elements to sample.
void CheckSampled(const OpContext& context, const GridSampling& sampling);

// An axis of the input.
struct SampledAxis {
  int64_t size = 0;
  bool align_corners = true;
  SamplingPadding padding = SamplingPadding::kZeros;
};

// A position along an axis, in elements from the first, and the derivative of the position by the
// coordinate in the grid.
template <typename T>
struct SampledPlace {
  T position;
  T slope;
};

// A tap outside is absent (its index is -1), and counts as 0.
template <typename T, int kTaps>
struct AxisTaps {
  int64_t index[kTaps];
  T weight[kTaps];
  T slope[kTaps];  // the derivative of the weight by the coordinate
};

// The number of taps along an axis.
constexpr int TapsOf(SamplingMode mode) {
  return mode == SamplingMode::kNearest ? 1 : mode == SamplingMode::kLinear ? 2 : 4;
}
// The number of taps of a place.
constexpr int TapsOf(SamplingMode mode, int axes) {
  return axes == 0 ? 1 : TapsOf(mode) * TapsOf(mode, axes - 1);
}

// Moves a place that is outside of the axis inside, as the padding says. The axis ends at the
// centers of the outer elements or, without align_corners, half an element further out.
template <typename T>
constexpr SampledPlace<T> Padded(const SampledAxis& axis, SampledPlace<T> at) {
  const T low = axis.align_corners ? T(0) : T(-0.5);
  const T high = static_cast<T>(axis.size - 1) - low;
  if (axis.padding == SamplingPadding::kZeros || (at.position >= low && at.position <= high)) {
    return at;
  }
  if (axis.padding == SamplingPadding::kBorder) {
    if (at.position < low) return {T(0), T(0)};
    if (at.position > high) return {static_cast<T>(axis.size - 1), T(0)};
    return at;  // NaN
  }
  const T span = high - low;
  if (!(span > T(0))) return {at.position - at.position, T(0)};  // 0, or NaN
  const T distance = at.position - low;
  const T way = std::fmod(std::fabs(distance), span + span);
  const T direction = distance < T(0) ? -at.slope : at.slope;
  return way <= span ? SampledPlace<T>{low + way, direction}
                     : SampledPlace<T>{low + (span + span - way), -direction};
}

// Returns the index of the element at a whole position, -1 if there is none.
template <typename T>
constexpr int64_t IndexAt(const SampledAxis& axis, T position) {
  // A number of float32 may be beyond the size that it was rounded from.
  if (!(position >= T(0) && position <= static_cast<T>(axis.size - 1))) return -1;
  const auto index = static_cast<int64_t>(position);
  return index < axis.size ? index : axis.size - 1;
}

// Keys' cubic convolution with a = -0.75, as ONNX and PyTorch have it: the weight of an element at
// a distance from 0 to 2, and its derivative.
template <typename T>
constexpr SampledPlace<T> CubicWeight(T distance) {
  constexpr T a = T(-0.75);
  if (distance <= T(1)) {
    return {((a + T(2)) * distance - (a + T(3))) * distance * distance + T(1),
            (T(3) * (a + T(2)) * distance - T(2) * (a + T(3))) * distance};
  }
  return {((a * distance - T(5) * a) * distance + T(8) * a) * distance - T(4) * a,
          (T(3) * a * distance - T(10) * a) * distance + T(8) * a};
}

// Returns the taps along an axis for a coordinate of the grid, which is -1 at the axis's beginning
// and 1 at its end. A coordinate that is NaN has weights that are NaN.
template <typename T, SamplingMode kMode>
constexpr AxisTaps<T, TapsOf(kMode)> TapsAt(const SampledAxis& axis, T coordinate) {
  constexpr int kTaps = TapsOf(kMode);
  const T last = static_cast<T>(axis.size - 1);
  const T scale = (axis.align_corners ? last : static_cast<T>(axis.size)) / T(2);
  SampledPlace<T> at{coordinate * scale + last / T(2), scale};
  if constexpr (kMode != SamplingMode::kCubic) {
    at = Padded<T>(axis, at);
    if (axis.padding != SamplingPadding::kZeros) {
      // At the outer elements themselves, too: beyond is no tap, so the slopes of the weights would
      // be right for neither side.
      if (at.position <= T(0)) at = {T(0), T(0)};
      if (at.position >= last) at = {last, T(0)};
    }
  }
  AxisTaps<T, kTaps> taps{};
  if (at.position != at.position) {
    for (int k = 0; k < kTaps; ++k) taps.weight[k] = taps.slope[k] = at.position;
    return taps;
  }
  if constexpr (kMode == SamplingMode::kNearest) {
    taps.index[0] = IndexAt(axis, std::rint(at.position));
    taps.weight[0] = T(1);
    return taps;
  }
  const T floor = std::floor(at.position);
  const T beyond = at.position - floor;
  for (int k = 0; k < kTaps; ++k) {
    const T step = static_cast<T>(k + 1 - kTaps / 2);  // from the element at or before the place
    if constexpr (kMode == SamplingMode::kLinear) {
      taps.index[k] = IndexAt(axis, floor + step);
      taps.weight[k] = k == 0 ? T(1) - beyond : beyond;
      taps.slope[k] = k == 0 ? -at.slope : at.slope;
    } else {
      const T distance = k < 2 ? beyond - step : step - beyond;
      const SampledPlace<T> weight = CubicWeight(distance);
      // Not the place, but each tap is moved inside.
      const T position = Padded<T>(axis, {floor + step, T(0)}).position;
      taps.index[k] = IndexAt(axis, position);
      taps.weight[k] = weight.position;
      taps.slope[k] = (k < 2 ? weight.slope : -weight.slope) * at.slope;
    }
  }
  return taps;
}

// A combination of taps, one along each of kAxes axes.
template <typename T, int kAxes>
struct PlaceTap {
  int64_t offset;  // in the channel; -1: the tap is absent
  T weight;
  T slopes[kAxes];  // the derivatives of the weight by the place's coordinates in the grid
};

// The axes of an input with the distances of neighbours along them.
template <int kAxes>
struct SampledAxes {
  // Depth, height and width, of which images lack the first.
  explicit SampledAxes(const GridSampling& sampling) {
    int64_t stride = 1;
    for (int i = kAxes - 1; i >= 0; --i) {
      const int64_t size = sampling.input.size[static_cast<size_t>(i + 3 - kAxes)];
      axes[i] = {
          .size = size, .align_corners = sampling.align_corners, .padding = sampling.padding};
      strides[i] = stride;
      stride *= size;
    }
  }

  // Sets taps[0 … TapsOf(kMode, kAxes)) to the taps of a place. The place's coordinates in the grid
  // begin with the last axis. Each coordinate is read once.
  template <SamplingMode kMode, typename T>
  constexpr void Locate(const T* place, PlaceTap<T, kAxes>* taps) const {
    constexpr int kOfAxis = TapsOf(kMode);
    AxisTaps<T, kOfAxis> along[kAxes];
    for (int i = 0; i < kAxes; ++i) along[i] = TapsAt<T, kMode>(axes[i], place[kAxes - 1 - i]);
    for (int k = 0; k < TapsOf(kMode, kAxes); ++k) {
      int at[kAxes];
      int rest = k;
      for (int i = kAxes - 1; i >= 0; --i, rest /= kOfAxis) at[i] = rest % kOfAxis;
      PlaceTap<T, kAxes> tap{.offset = 0, .weight = T(1)};
      for (int i = 0; i < kAxes; ++i) {
        const int64_t index = along[i].index[at[i]];
        tap.offset = index < 0 || tap.offset < 0 ? -1 : tap.offset + index * strides[i];
        tap.weight *= along[i].weight[at[i]];
      }
      for (int i = 0; i < kAxes; ++i) {
        T slope = along[i].slope[at[i]];
        for (int j = 0; j < kAxes; ++j) slope *= i == j ? T(1) : along[j].weight[at[j]];
        tap.slopes[kAxes - 1 - i] = slope;
      }
      taps[k] = tap;
    }
  }

  SampledAxis axes[kAxes];
  int64_t strides[kAxes];
};

// Calls visit.template operator()<mode, number of axes>() for the sampling's. There is no cubic
// sampling of volumes.
template <typename Visit>
auto VisitSampling(const GridSampling& sampling, const Visit& visit) {
  const bool is_image = sampling.axes == VolumeAxes::kImage;
  switch (sampling.mode) {
    case SamplingMode::kNearest:
      return is_image ? visit.template operator()<SamplingMode::kNearest, 2>()
                      : visit.template operator()<SamplingMode::kNearest, 3>();
    case SamplingMode::kLinear:
      return is_image ? visit.template operator()<SamplingMode::kLinear, 2>()
                      : visit.template operator()<SamplingMode::kLinear, 3>();
    case SamplingMode::kCubic:
      break;
  }
  return visit.template operator()<SamplingMode::kCubic, 2>();
}

}  // namespace skiff
