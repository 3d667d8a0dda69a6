// Matrix products of images that are blocked by as many channels as a vector has lanes: what
// convolutions come down to. A *tile* is a pixel, or an element of a transformed tile of them; a
// *panel* is one or two blocks of the channels produced.
#pragma once

#include <cstdint>

namespace skiff {

// Lanes of a float vector of the instruction set in use.
int64_t FloatLanes();

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
