// Where roi_align samples an image.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "framework/op/op_context.h"
#include "operators/detection/kernels/boxes.h"

namespace skiff {

// A coordinate beyond so many pixels counts as NaN.
inline constexpr double kFarthestRoi = 1e6;
// The most samples of a bin along an axis that the attribute may ask for.
inline constexpr int64_t kMostRoiSamples = 1024;

// The dims and attributes of roi_align.
struct RoiSettings {
  int64_t images = 0;
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t pooled_height = 1;
  int64_t pooled_width = 1;
  float spatial_scale = 1;
  int64_t sampling_ratio = -1;  // samples of a bin along an axis; not positive: one for each pixel
  bool aligned = false;
};

// Returns the settings of roi_align or its gradient op. Dims of -1 stay unknown. Throws Error for
// shapes and attributes that don't fit.
RoiSettings ParseRoiSettings(const OpContext& context);

// Two neighbours along an axis and their weights.
template <typename T>
struct RoiTap {
  int64_t low;
  int64_t high;
  T of_low;
  T of_high;
};

// A region of interest along an axis of an image.
template <typename T>
class RoiRange {
 public:
  constexpr RoiRange(T begin, T end, int64_t bins, int64_t size, const RoiSettings& settings)
      : size_(size) {
    const T scale = static_cast<T>(settings.spatial_scale);
    const T offset = settings.aligned ? T(0.5) : T(0);
    begin_ = begin * scale - offset;
    const T scaled_end = end * scale - offset;
    // Not if a coordinate is NaN.
    const bool is_near =
        std::fabs(begin_) <= T(kFarthestRoi) && std::fabs(scaled_end) <= T(kFarthestRoi);
    if (!is_near) {
      begin_ = bin_ = std::numeric_limits<T>::quiet_NaN();
      samples_ = 1;
      return;
    }
    T extent = scaled_end - begin_;
    if (!settings.aligned && extent < T(1)) extent = T(1);
    bin_ = extent / static_cast<T>(bins);
    samples_ = settings.sampling_ratio > 0 ? settings.sampling_ratio
                                           : static_cast<int64_t>(std::ceil(bin_));
  }

  // The samples of a bin, also those outside of the image; 0 or less if the region is inside out.
  constexpr int64_t samples() const { return samples_; }

  // Calls visit(tap) for each sample of a bin in the image.
  template <class Visit>
  constexpr void ForEachTap(int64_t bin, const Visit& visit) const {
    const T begin = begin_ + static_cast<T>(bin) * bin_;
    const T step = bin_ / static_cast<T>(samples_);
    int64_t first = 0;
    int64_t last = samples_;
    // A region far larger than the image has most of its samples outside.
    if (step > T(0.25)) {
      first = std::max(first, static_cast<int64_t>((T(-1) - begin) / step) - 2);
      last = std::min(last, static_cast<int64_t>((static_cast<T>(size_) - begin) / step) + 2);
    }
    for (int64_t i = first; i < last; ++i) {
      const T position = begin + (static_cast<T>(i) + T(0.5)) * bin_ / static_cast<T>(samples_);
      if (position < T(-1) || position > static_cast<T>(size_)) continue;
      visit(TapAt(position));
    }
  }

 private:
  // Of a position that isn't outside.
  constexpr RoiTap<T> TapAt(T position) const {
    if (position != position) return {0, 0, position, T(0)};
    const T inside = position > T(0) ? position : T(0);
    const auto low = static_cast<int64_t>(inside);
    if (low >= size_ - 1) return {size_ - 1, size_ - 1, T(1), T(0)};
    const T rest = inside - static_cast<T>(low);
    return {low, low + 1, T(1) - rest, rest};
  }

  T begin_ = 0;
  T bin_ = 0;
  int64_t samples_ = 0;
  int64_t size_;  // of the image
};

// The samples of a region.
template <typename T>
struct RoiSamples {
  constexpr RoiSamples(const Box<T>& roi, const RoiSettings& settings)
      : rows(roi.ymin, roi.ymax, settings.pooled_height, settings.height, settings),
        columns(roi.xmin, roi.xmax, settings.pooled_width, settings.width, settings),
        width(settings.width) {}

  // Calls visit(offset in a channel, weight in the average) for each pixel of each sample of a bin.
  template <class Visit>
  constexpr void ForEachPixel(int64_t row, int64_t column, const Visit& visit) const {
    const int64_t all = rows.samples() * columns.samples();
    const T share = T(1) / static_cast<T>(all > 1 ? all : 1);
    rows.ForEachTap(row, [&](const RoiTap<T>& y) {
      columns.ForEachTap(column, [&](const RoiTap<T>& x) {
        visit(y.low * width + x.low, y.of_low * x.of_low * share);
        visit(y.low * width + x.high, y.of_low * x.of_high * share);
        visit(y.high * width + x.low, y.of_high * x.of_low * share);
        visit(y.high * width + x.high, y.of_high * x.of_high * share);
      });
    });
  }

  RoiRange<T> rows;
  RoiRange<T> columns;
  int64_t width;
};

}  // namespace skiff
