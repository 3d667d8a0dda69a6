// Assigns offsets in one arena to buffers with known lives.
//
// Two buffers (arena_buffer.h) whose lives meet never overlap in the arena.
//
// The planner tries several quick orders of placement (arena_orders.h) and keeps the best. If that
// is above the lower bound, a bounded search (arena_search.h) looks for placements at and near the
// bound.
//
// Other buffers may use the space of a slice of a group before and after its life, and always the
// space between slices. Only the quick orders place groups (arena_groups.h), not the search.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/arena_buffer.h"

namespace skiff {

struct ArenaPlan {
  std::vector<int64_t> offsets;  // one per buffer
  int64_t planned_bytes = 0;     // the size of the arena
  // The lower bound: the most bytes live at one instant. (A group is another bound: if few slices
  // are live at once, an arena that must hold the group can't come near max_live_bytes.)
  int64_t max_live_bytes = 0;
};

struct ArenaPlanOptions {
  // The planner stops at the first plan of at most this many bytes. 0: it looks for the smallest.
  int64_t capacity = 0;
  // The most states that the search may visit. Each places one buffer, so with a limit below the
  // number of buffers there is no search.
  int64_t max_search_nodes = 4000;
  // The most buffers and instants that the search may examine, which bounds its time for any input.
  int64_t max_search_steps = 100'000'000;
  // The time after which the search stops; 0: no limit. The quick orders always finish. With a
  // limit, plans may differ from run to run.
  double time_limit_seconds = 0;
};

// Returns a plan. Without a time limit it depends on the arguments only. Throws Error
// - (kInvalidArgument) for negative bytes, an alignment other than a power of two, a life that ends
//   before it begins, a negative or unaligned group_offset, and two buffers of a group, named by
//   index, that share a byte at some instant;
// - (kResourceExhausted) if more than 2^60 bytes are live at once or in one group, or more than
//   2^61 in all groups.
ArenaPlan PlanArena(const std::vector<ArenaBuffer>& buffers, const ArenaPlanOptions& options = {});

}  // namespace skiff
