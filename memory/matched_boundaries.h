// Finds which dying and new buffers share an interval of the arena at a boundary between instants.
//
// If all capacity is in use just before and just after a boundary, the new buffers take exactly the
// space that the dying ones leave. If the sizes have few coincident sums, both sides fall apart
// into blocks, the smallest groups with equal sums. In a placement, each block is one interval: the
// dying buffers of the block fill the interval before the boundary, and the new buffers fill it
// after the boundary. A search by buffers alone would find this out only many buffers later. It is
// a guess where sums coincide by accident, since two blocks might interleave. So a search that uses
// it proves nothing by failing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/search_buffer.h"

namespace skiff {

class MatchedBoundaries {
 public:
  // `slack` is the capacity left at each instant. All lives must be within [0, slack.size()).
  MatchedBoundaries(std::span<const SearchBuffer> buffers, std::span<const int64_t> slack);

  bool empty() const { return blocks_.empty(); }
  // Returns whether a buffer may be placed at `offset`, given that at every instant exactly the
  // space below heights[instant] is taken.
  bool Allows(size_t buffer, int64_t offset, std::span<const int64_t> heights) const;
  // At each instant, buffers must be placed from bottom to top and removed in reverse order.
  void Place(size_t buffer, int64_t offset);
  void Remove(size_t buffer);

 private:
  enum Side { kDying, kNew };
  struct Block {
    int64_t bytes = 0;           // of either side
    int64_t base = 0;            // its offset, once a buffer of it is placed
    int64_t placed[2] = {0, 0};  // bytes, by side
    bool IsBegun() const { return placed[kDying] + placed[kNew] > 0; }
  };
  struct Group {  // of buffers on one side, as a set of bits
    uint32_t members;
    int64_t bytes;
  };

  void FindBlocks(int32_t boundary, std::span<const size_t> dying, std::span<const size_t> born);
  std::vector<Group> GroupsOf(std::span<const size_t> members) const;
  bool AllowsSide(Side side, int32_t block, int32_t instant, int64_t offset, int64_t size,
                  std::span<const int64_t> heights) const;
  void Add(size_t buffer, int64_t bytes);

  std::vector<SearchBuffer> buffers_;
  std::vector<Block> blocks_;
  std::vector<std::vector<int32_t>> blocks_at_;  // by the instant before the boundary
  std::vector<int32_t> block_of_[2];             // by side and buffer; -1: none
  std::vector<int32_t> open_[2];                 // by side and instant: the block begun, or -1
};

}  // namespace skiff
