// The settings of all blocks of one size class of a caching allocator.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "memory/allocator.h"
#include "memory/segment_source.h"

namespace skiff {

// Blocks of similar sizes, which share segments.
struct BlockClass {
  std::shared_ptr<SegmentSource> source;
  // The size of the largest block of this class, in bytes. Classes are in ascending order; the last
  // has no bound.
  int64_t max_block_bytes = std::numeric_limits<int64_t>::max();
  // The usual size of a segment. A larger block gets a segment of its own, and so does every block
  // if this is 0. If the source commits memory later, a segment costs only addresses.
  int64_t segment_bytes = 0;
  // How many bytes of freed blocks to park per stream: to keep unmerged for requests of exactly
  // their size, which is cheaper than merging and splitting. Before more memory is taken, parked
  // blocks are merged if they exceed half of the limit; before an allocation fails, all are. Only
  // for a class with a bound.
  int64_t max_parked_bytes = 0;
  int64_t rounding = kBufferAlignment;   // block sizes are multiples of this, in bytes
  int64_t alignment = kBufferAlignment;  // of block addresses; a power of two
};

}  // namespace skiff
