// The loops of softmax and of the losses based on it, on tiles: a few neighbouring items, each with
// one value per class.
//
// softmax: y_c = exp(x_c - max x) / sum_j exp(x_j - max x). A tile fits into a core's cache, so
// that maximum, exponentials and scaling read memory once. The functions are single-threaded;
// ForTiles distributes tiles over threads. T is float (vectorised) or double.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/parallel.h"

namespace skiff {

// Class c of item i is at i * item_stride + c * class_stride; one of the strides is 1.
struct SoftmaxTile {
  static constexpr int64_t kMaxItems = 64;
  int64_t items = 0;
  int64_t classes = 0;
  int64_t item_stride = 0;
  int64_t class_stride = 0;
  // The offset of the tile's first value in the tensor, and the index of its first item among all
  // items.
  int64_t offset = 0;
  int64_t first_item = 0;
};

// max[i] = the largest value of item i.
template <typename T>
void TileMax(const SoftmaxTile& tile, const T* x, T* max);
// y = exp(x - max[i]), sum[i] = the item's sum. y may be x, or nullptr if only sums are wanted.
template <typename T>
void TileExp(const SoftmaxTile& tile, const T* x, const T* max, T* y, T* sum);
// y = x * factor[i]. y may be x.
template <typename T>
void TileScale(const SoftmaxTile& tile, const T* x, const T* factor, T* y);
// dot[i] = the item's sum of a * b.
template <typename T>
void TileDot(const SoftmaxTile& tile, const T* a, const T* b, T* dot);
// dot[i] = the item's sum of a * (max[i] - x). With a label as a, this is the part of a
// cross-entropy below the maximum.
template <typename T>
void TileDistance(const SoftmaxTile& tile, const T* a, const T* x, const T* max, T* dot);
// dx = (dy - dot[i]) * y. dx may be y or dy.
template <typename T>
void TileSoftmaxGrad(const SoftmaxTile& tile, const T* y, const T* dy, const T* dot, T* dx);

// y = a * a_factor[i] + b * b_factor[i]. y may be a or b.
template <typename T>
void TileMix(const SoftmaxTile& tile, const T* a, const T* a_factor, const T* b, const T* b_factor,
             T* y);
// sum[i] = the item's sum of x.
template <typename T>
void TileSum(const SoftmaxTile& tile, const T* x, T* sum);
// y = x - max[i] - shift[i], in this order: max is exact, shift is small. y may be x.
template <typename T>
void TileSubtract(const SoftmaxTile& tile, const T* x, const T* max, const T* shift, T* y);
// dx = dy - exp(y) * sum[i]. dx may be y or dy.
template <typename T>
void TileLogSoftmaxGrad(const SoftmaxTile& tile, const T* y, const T* dy, const T* sum, T* dx);

// For the few items that the loops above can't treat in T:

// Calls visit(offset) for the values of an item. Offsets count from the tile's first value.
template <typename Visit>
void ForEachClass(const SoftmaxTile& tile, int64_t item, const Visit& visit) {
  for (int64_t c = 0; c < tile.classes; ++c) {
    visit(item * tile.item_stride + c * tile.class_stride);
  }
}
// Returns the item's sum of a * b, in float64.
template <typename T>
double ItemDot(const SoftmaxTile& tile, int64_t item, const T* a, const T* b) {
  double sum = 0;
  ForEachClass(tile, item,
               [&](int64_t at) { sum += static_cast<double>(a[at]) * static_cast<double>(b[at]); });
  return sum;
}
// Returns a tile of an item alone. Its first value is at item * tile.item_stride.
inline SoftmaxTile TileOfItem(const SoftmaxTile& tile, int64_t item) {
  SoftmaxTile alone = tile;
  alone.items = 1;
  alone.offset += item * tile.item_stride;
  alone.first_item += item;
  return alone;
}

// Calls body(tile) for all tiles of an [outer, classes, inner] tensor, on several threads. The
// pointers passed to the functions above must start at tile.offset. Items are visited even if there
// are no classes, since results with one value per item must be written. `body` must not throw.
template <typename Body>
void ForTiles(int64_t outer, int64_t classes, int64_t inner, const Body& body) {
  // For short float32 rows, two arrays of a tile fit into the first-level cache.
  constexpr int64_t kTileElements = 4096;
  constexpr int64_t kGrainElements = 16384;
  const bool is_row = inner == 1;
  const int64_t line = is_row ? outer : inner;
  const int64_t item_elements = std::max<int64_t>(classes, 1);
  const int64_t wanted = is_row ? kTileElements / item_elements : line;
  const int64_t items = std::clamp<int64_t>(wanted, 1, SoftmaxTile::kMaxItems);
  const int64_t tiles_a_line = (line + items - 1) / items;
  const int64_t tiles = is_row ? tiles_a_line : outer * tiles_a_line;
  const int64_t grain = std::max<int64_t>(1, kGrainElements / (items * item_elements));
  ParallelFor(tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = i % tiles_a_line * items;
      const int64_t line_index = i / tiles_a_line;
      SoftmaxTile tile;
      tile.items = std::min(items, line - start);
      tile.classes = classes;
      tile.item_stride = is_row ? classes : 1;
      tile.class_stride = is_row ? 1 : inner;
      tile.offset = is_row ? start * classes : line_index * classes * inner + start;
      if (classes == 0) tile.offset = 0;
      tile.first_item = line_index * line + start;
      body(tile);
    }
  });
}

}  // namespace skiff
