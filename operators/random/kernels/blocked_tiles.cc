#include "operators/random/kernels/blocked_tiles.h"

#include "framework/base/element_count.h"

namespace skiff {

void InterleaveBytes(const BlockedTile& tile, const uint8_t* from, int64_t stride, uint8_t* to) {
  if (tile.channels < tile.block) std::fill_n(to, tile.elements(), uint8_t{0});
  for (int64_t c = 0; c < tile.channels; ++c) {
    for (int64_t p = 0; p < tile.positions; ++p) to[p * tile.block + c] = from[c * stride + p];
  }
}

BlockedTiles::BlockedTiles(const Shape& shape, Layout layout)
    : channels_(shape.dim(1)),
      positions_(shape.element_count(2, shape.rank())),
      block_(layout.channel_block),
      blocks_(RoundUp(channels_, block_) / block_),
      tiles_a_block_((positions_ + BlockedTile::kMaxPositions - 1) / BlockedTile::kMaxPositions),
      count_(shape[0] * blocks_ * tiles_a_block_) {
  // A block's positions are cut into tiles, so that the bytes of a tile fit the first-level cache.
  constexpr int64_t kGrainElements = 8192;
  const int64_t tile_elements = std::min(positions_, BlockedTile::kMaxPositions) * block_;
  grain_ = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(tile_elements, 1));
}

BlockedTile BlockedTiles::At(int64_t index) const {
  const int64_t first = index % tiles_a_block_ * BlockedTile::kMaxPositions;
  const int64_t block = index / tiles_a_block_;
  const int64_t channel = block % blocks_ * block_;
  return {.channels = std::min(block_, channels_ - channel),
          .positions = std::min(BlockedTile::kMaxPositions, positions_ - first),
          .block = block_,
          .plain = (block / blocks_ * channels_ + channel) * positions_ + first,
          .blocked = (block * positions_ + first) * block_,
          .channel_stride = positions_};
}

}  // namespace skiff
