// Which buffers share an interval of the arena at the moment when some die and others are born.
//
// Let all capacity be in use just before and just after a boundary between two instants. Then what
// dies there leaves just the space that what is born there takes. If those sizes have only a few
// coincident sums, the two sides fall apart into blocks, the smallest groups with equal sums, and
// in a placement each block is one interval, which its dying buffers fill on one side and its new
// ones on the other, with nothing else between. That settles early what a search would otherwise
// find out only many buffers later. Where sums coincide by accident it is a guess, as two blocks
// might lie intertwined; so a search that uses it proves nothing by failing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/search_buffer.h"

namespace skiff {

class MatchedBoundaries {
 public:
  // The lives of the buffers are in 0 … slack.size() - 1; slack is the capacity that is left at
  // each instant.
  MatchedBoundaries(std::span<const SearchBuffer> buffers, std::span<const int64_t> slack);

  bool empty() const { return blocks_.empty(); }
  // Whether a buffer may lie at `offset`, if at every instant all below heights[instant] is taken,
  // and nothing above it.
  bool Allows(size_t buffer, int64_t offset, std::span<const int64_t> heights) const;
  // Buffers are placed from the bottom to the top of each instant, and removed in reverse.
  void Place(size_t buffer, int64_t offset);
  void Remove(size_t buffer);

 private:
  enum Side { kDying, kNew };
  struct Block {
    int64_t bytes = 0;           // of either side
    int64_t base = 0;            // its offset, once something of it is placed
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
