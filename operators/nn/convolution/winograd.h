// Winograd's minimal filtering for 3x3 convolutions of stride 1 (Lavin & Gray 2016, "Fast
// Algorithms for Convolutional Neural Networks"): F(4x4, 3x3) and F(2x2, 3x3).
//
// An output tile of t x t pixels is Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A, where d are the (t + 2) x (t + 2)
// input pixels that it sees and g is the filter. A *plane* is one of the (t + 2)² elements of all
// transformed tiles; summed over channels it is a matrix product [tiles, channels] x [channels,
// filters]. The interpolation points of F(4x4, 3x3) are 0, ±1/√2, ±√2 and ∞. Their error is a
// quarter of the error of the usual 0, ±1, ±2, ∞ (Barabasz et al. 2020, "Error Analysis and
// Improving the Accuracy of Winograd Convolution for Deep Neural Networks", on the choice of
// points).
//
// Images are blocked by as many channels as a vector has lanes: [batch][block][row][column][lane].
// Filters are plain, [outputs, inputs, 3, 3]. Both may be bfloat16, which the transforms convert:
// tiles, transformed filters and products are float32.
#pragma once

#include <cstdint>

#include "operators/common/half.h"
#include "operators/nn/kernels/image_window.h"

namespace skiff {

// Returns the number of lanes of a float vector in the instruction set in use.
int64_t WinogradLanes();

// The extents of a batch of blocked images.
struct BlockedImages {
  int64_t blocks = 0;  // of channels
  Extents size{};

  int64_t block_pixels() const { return size[0] * size[1]; }
};

// What output pixels go through before they are written: max(0, pixel + shift[channel] + addend).
struct PixelEpilogue {
  const float* shift = nullptr;   // by channel, padded to a whole block; nullptr: no epilogue
  const float* addend = nullptr;  // laid out as the pixels, and may be them; nullptr: none
  bool rectifies = false;
};

// How the output pixels of a batch are cut into tiles, which are numbered by image, row and column.
// The tiles at the lower and right edge may extend beyond the image.
struct TileGrid {
  int64_t side = 4;  // output pixels of a tile: 4 or 2
  int64_t batch = 0;
  Extents tiles{};    // of an image: rows, columns
  Extents padding{};  // rows of zeros above, columns of zeros left of the input

  int64_t count() const { return batch * tiles[0] * tiles[1]; }
  int64_t planes() const { return (side + 2) * (side + 2); }
};

// Transformed tiles, indexed by (plane, block, tile, lane).
struct TilePlanes {
  float* data = nullptr;
  int64_t plane_stride = 0;
  int64_t block_stride = 0;
};

// The transformed filters of a panel, indexed by (plane, channel summed, channel of the panel). A
// panel is one or two blocks of the channels produced.
struct FilterPanel {
  float* data = nullptr;
  int64_t plane_stride = 0;
  int64_t blocks = 2;
};

// The filters [outputs, inputs, 3, 3] of a convolution, whose products sum over `inputs`. With
// `transposed` they sum over `outputs`, and each filter is turned by 180 degrees: the gradient of
// the input.
struct Filters {
  int64_t outputs = 0;
  int64_t inputs = 0;
  bool transposed = false;
};

// The transforms of one instruction set. T is float or BFloat16.
template <typename T>
struct WinogradTransforms {
  // Computes Bᵀ d B of input tiles. Tile `range.begin` becomes tile 0 of the planes.
  void (*input_tiles)(const TileGrid& grid, const BlockedImages& images, const IndexRange& range,
                      int64_t block, const T* pixels, const TilePlanes& planes) = nullptr;
  // Computes A dY Aᵀ of output gradients, the adjoint of the output transform.
  void (*gradient_tiles)(const TileGrid& grid, const BlockedImages& images, const IndexRange& range,
                         int64_t block, const T* pixels, const TilePlanes& planes) = nullptr;
  // Computes Aᵀ M A with the epilogue, and writes the pixels of output tiles that are on the image.
  void (*output_tiles)(const TileGrid& grid, const BlockedImages& images, const IndexRange& range,
                       int64_t block, const TilePlanes& planes, const PixelEpilogue& epilogue,
                       T* pixels) = nullptr;

  // Computes G g Gᵀ for the blocks of summed channels in `range`. The first one becomes row 0 of
  // the panel. Channels that pad a block are 0.
  void (*filters)(int64_t side, const Filters& shape, const T* filters, const IndexRange& range,
                  int64_t first_block, const FilterPanel& panel) = nullptr;
  // Computes Gᵀ dU G for a block of inputs and a block of outputs. dU is the sum of `sum_count`
  // arrays, `sum_stride` apart, with a row for each input channel. Writes the gradients of the
  // filters in the plain layout.
  void (*filter_gradients)(int64_t side, const Filters& shape, int64_t input_block,
                           int64_t output_block, const float* sums, int64_t sum_count,
                           int64_t sum_stride, int64_t plane_stride, int64_t row_stride,
                           T* gradients) = nullptr;
};

// Returns the transforms of the instruction set in use.
template <typename T>
WinogradTransforms<T> TransformsOf();

// products[tile] (+)= sum over channels of tiles[tile, channel] * filters[channel], for `count`
// tiles and one plane.
struct TileProduct {
  const float* tiles = nullptr;  // tile 0 of the first block of summed channels
  int64_t tiles_block_stride = 0;
  int64_t blocks = 0;  // of summed channels
  const float* filters = nullptr;
  int64_t panel_blocks = 2;
  float* products = nullptr;
  int64_t products_block_stride = 0;
  bool accumulate = false;
};
void MultiplyTiles(const TileProduct& product, int64_t count);

// products[input channel, output channel] (+)= sum over tiles of tiles[tile, input channel] *
// gradients[tile, output channel], for `blocks` blocks of input channels, a panel of output
// channels and one plane.
struct GradientProduct {
  const float* tiles = nullptr;
  const float* gradients = nullptr;
  int64_t tiles_block_stride = 0;
  int64_t gradients_block_stride = 0;
  int64_t blocks = 0;  // of input channels
  int64_t panel_blocks = 2;
  float* products = nullptr;
  bool accumulate = false;
};
void MultiplyGradients(const GradientProduct& product, int64_t count);

}  // namespace skiff
