// Walks over a channel-blocked tensor and a plain one of the same shape together, in tiles that fit
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

  int64_t channels = 0;   // channels that exist: the last block may have fewer than the others
  int64_t positions = 0;  // at most kMaxPositions
  int64_t block = 1;
  // The index of the first position of the first channel in the plain tensor, and in the blocked
  // storage, where the tile's block * positions elements are contiguous. In the plain tensor the
  // next channel begins `channel_stride` elements further.
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
  // The block must be at most BlockedTile::kMaxBlock. Throws Error for an unknown shape and for a
  // rank below 2.
  BlockedTiles(const Shape& shape, Layout layout);

  // Calls visit(tile) for every tile, on several threads. `visit` must not throw.
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
