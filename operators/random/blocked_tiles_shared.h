// Walks over a channel-blocked tensor beside one that lies in the plain order, in tiles that fit
// the first-level cache.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/parallel.h"
#include "framework/tensor/layout.h"
#include "framework/tensor/shape.h"

namespace skiff {

// Some positions of the channels of one block.
struct BlockedTile {
  static constexpr int64_t kMaxBlock = 16;
  static constexpr int64_t kMaxPositions = 256;
  static constexpr int64_t kMaxElements = kMaxBlock * kMaxPositions;

  int64_t channels = 0;   // those that exist: fewer than the block in a last one
  int64_t positions = 0;  // at most kMaxPositions
  int64_t block = 1;
  // Of the first position of the first channel: its index in the plain order, and its place in the
  // blocked storage, where the tile's block * positions elements lie together. In the plain order
  // the next channel begins `channel_stride` elements further.
  int64_t plain = 0;
  int64_t blocked = 0;
  int64_t channel_stride = 0;

  int64_t elements() const { return positions * block; }
};

// Sets to[position * block + channel] = from[channel * stride + position], and 0 for the channels
// that fill up the block.
void InterleaveBytes(const BlockedTile& tile, const uint8_t* from, int64_t stride, uint8_t* to);

class BlockedTiles {
 public:
  // The block is at most BlockedTile::kMaxBlock. Error for an unknown shape and a rank below 2.
  BlockedTiles(const Shape& shape, Layout layout);

  // Calls visit(tile) for every tile, on threads. `visit` must not throw.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    ParallelFor(count_, grain_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) visit(At(i));
    });
  }

 private:
  BlockedTile At(int64_t index) const;

  int64_t channels_;
  int64_t positions_;
  int64_t block_;
  int64_t blocks_;
  int64_t tiles_a_block_;
  int64_t count_;
  int64_t grain_;
};

}  // namespace skiff
