// The three passes of a 3x3 convolution of stride 1 by Winograd's minimal filtering: how they cut
// the work into pieces that fit the caches, for threads that don't share anything they write.
//
// A part is the work of one thread. A pass fixes the number of parts when it is made, so results
// depend on that number, not on how many threads run later.
#pragma once

#include <cstdint>

#include "operators/nn/convolution/convolution_geometry.h"
#include "operators/nn/convolution/winograd.h"

namespace skiff {

// Returns whether the passes can compute a convolution, whatever its size: 3x3, stride and dilation
// 1, one group, padding of at most 2.
bool IsWinogradConvolution(const Convolution& conv);

// Returns the side of a tile, 4 or 2, that takes fewer multiplications for images of this size.
int64_t WinogradTileSide(const Extents& output_size);

// In what follows, T is the type of images and filters: float or BFloat16, which gets the bits of
// float32, rounded.

// Correlates images with filters: the convolution itself, or the gradient of its input, where the
// gradient of the output is the image and the filters are transposed.
template <typename T>
class WinogradCorrelation {
 public:
  WinogradCorrelation(const Convolution& conv, bool gradient_of_input, int64_t side, int64_t parts);

  // The bytes of transformed filters worth keeping, or 0 if reading would take longer than
  // transforming on the fly.
  int64_t derived_bytes() const;
  int64_t workspace_bytes() const;

  void TransformAllFilters(const T* filters, float* derived) const;
  // `derived` must be nullptr if derived_bytes() is 0.
  void Run(const T* images, const T* filters, const float* derived, float* workspace,
           const PixelEpilogue& epilogue, T* outputs) const;

 private:
  int64_t panels() const { return (produced_ + 1) / 2; }
  int64_t PanelBlocks(int64_t panel) const { return 2 * panel + 2 <= produced_ ? 2 : 1; }
  // Returns an offset in a plane of transformed filters.
  int64_t PanelOffset(int64_t panel, int64_t summed_blocks) const;

  void RunTileBlocks(int64_t part, const T* images, const float* derived, float* workspace,
                     const PixelEpilogue& epilogue, T* outputs) const;
  void RunPanels(int64_t part, const T* filters, const float* tiles, float* workspace,
                 const PixelEpilogue& epilogue, T* outputs) const;
  void RunPanel(int64_t panel, const IndexRange& tiles, const T* filters, const float* transformed,
                float* workspace, const PixelEpilogue& epilogue, T* outputs) const;

  WinogradTransforms<T> transforms_ = TransformsOf<T>();
  int64_t lanes_;
  TileGrid grid_;
  BlockedImages images_;
  BlockedImages outputs_;
  Filters filters_;
  int64_t summed_;    // blocks of channels that the products sum over
  int64_t produced_;  // blocks of channels that the pass computes
  int64_t parts_;
  bool keeps_filters_;
  int64_t block_tiles_;   // tiles that a part works on at a time
  int64_t summed_chunk_;  // blocks of channels whose filters are made at a time
  int64_t filter_plane_;  // plane strides
  int64_t image_plane_;
  int64_t product_plane_;
};

// Computes the gradient of the filters.
template <typename T>
class WinogradFilterGradient {
 public:
  WinogradFilterGradient(const Convolution& conv, int64_t side, int64_t parts);

  int64_t workspace_bytes() const;
  void Run(const T* images, const T* output_gradients, float* workspace, T* filter_gradients) const;

 private:
  int64_t panels() const { return (outputs_.blocks + 1) / 2; }
  int64_t PanelBlocks(int64_t panel) const { return 2 * panel + 2 <= outputs_.blocks ? 2 : 1; }

  void RunTileBlocks(const T* images, const T* output_gradients, float* workspace,
                     T* filter_gradients) const;
  void SumTileBlocks(int64_t part, const T* images, const T* output_gradients,
                     float* workspace) const;
  void RunFilterBlocks(const T* images, const T* output_gradients, float* workspace,
                       T* filter_gradients) const;
  void RunFilterBlock(int64_t panel, const IndexRange& inputs, const TilePlanes& tiles,
                      const TilePlanes& gradients, float* sums, T* filter_gradients) const;

  WinogradTransforms<T> transforms_ = TransformsOf<T>();
  int64_t lanes_;
  TileGrid grid_;
  BlockedImages images_;
  BlockedImages outputs_;
  Filters filters_;
  int64_t parts_;
  bool by_tile_blocks_;
  int64_t block_tiles_;
  int64_t input_group_;  // blocks of input channels that a sum covers at a time
  int64_t image_plane_;
  int64_t gradient_plane_;
  int64_t sum_plane_;
};

}  // namespace skiff
