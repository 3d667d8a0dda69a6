// Assigns offsets in one arena to buffers with known lifetimes.
//
// The planner knows nothing of tensors: a buffer is bytes, an alignment and a closed interval of
// instants. Two buffers whose intervals meet never overlap in the arena.
#pragma once

#include <cstdint>
#include <vector>

namespace skiff {

struct ArenaBuffer {
  int64_t bytes = 0;
  int64_t alignment = 64;  // a power of two
  int32_t first_use = 0;   // the first instant at which the buffer holds something
  int32_t last_use = 0;    // the last one, >= first_use
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // one a buffer
  int64_t planned_bytes = 0;     // the size of the arena
  int64_t max_live_bytes = 0;    // the lower bound: the most bytes live at one instant
};

// Greedy by size (Pisarchyk & Lee, arXiv 2001.03288, offset calculation) and greedy by first use,
// the better one kept. Ties are broken by position, so plans repeat.
ArenaPlan PlanArena(const std::vector<ArenaBuffer>& buffers);

}  // namespace skiff
