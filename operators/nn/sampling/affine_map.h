// The formula of affine_grid.
#pragma once

#include <cstdint>

#include "framework/op/op_context.h"
#include "operators/nn/kernels/volume_window.h"

namespace skiff {

struct AffineMap {
  VolumeAxes axes = VolumeAxes::kImage;
  VolumeDims places;  // the channels are the coordinates
  bool align_corners = true;
};

// Returns the map of affine_grid or its gradient op, by the shape in slot Theta and the attributes.
// Dims of -1 stay unknown. Throws Error for shapes and attributes that don't fit.
AffineMap ParseAffineMap(const OpContext& context);

// A place before the map: the coordinates, the last axis first, and 1.
template <typename T, int kAxes>
struct BasePlace {
  T at[kAxes + 1];
};

template <typename T>
constexpr T BaseCoordinate(bool align_corners, int64_t i, int64_t size) {
  if (!align_corners) return static_cast<T>(2 * i + 1) / static_cast<T>(size) - T(1);
  return size == 1 ? T(0) : static_cast<T>(2 * i) / static_cast<T>(size - 1) - T(1);
}

// Of place `index` of an image.
template <typename T, int kAxes>
constexpr BasePlace<T, kAxes> BaseOf(const AffineMap& map, int64_t index) {
  BasePlace<T, kAxes> base{};
  for (int k = 0; k < kAxes; ++k) {
    const int64_t size = map.places.size[static_cast<size_t>(2 - k)];
    base.at[k] = BaseCoordinate<T>(map.align_corners, index % size, size);
    index /= size;
  }
  base.at[kAxes] = T(1);
  return base;
}

// Returns a row of the matrix times the place.
template <typename T, int kAxes>
constexpr T MappedTo(const T* row, const BasePlace<T, kAxes>& base) {
  T sum = 0;
  for (int k = 0; k <= kAxes; ++k) sum += row[k] * base.at[k];
  return sum;
}

// Adds the terms of a place to the sums of a row's gradient.
template <typename T, int kAxes>
constexpr void AddToSums(T gradient, const BasePlace<T, kAxes>& base, double* sums) {
  for (int k = 0; k <= kAxes; ++k) {
    sums[k] += static_cast<double>(gradient) * static_cast<double>(base.at[k]);
  }
}

}  // namespace skiff
