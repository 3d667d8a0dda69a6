// Assigns offsets in one arena to buffers with known lifetimes.
//
// The planner knows nothing of tensors: a buffer is bytes, an alignment and a closed interval of
// instants. Two buffers whose intervals meet never overlap in the arena.
//
// First come several quick orders of placement (arena_orders.h), of which the best is kept. Where
// that is above the lower bound, a bounded search (arena_search.h) looks for placements at and near
// the bound.
//
// Buffers may be slices of a larger one: those of a group lie at given distances from each other.
// Each still has a life of its own, and its space is for others until it begins and once it has
// ended, as is what no slice covers. Groups are placed by quick orders alone (arena_groups.h): the
// search doesn't know them.
#pragma once

#include <cstdint>
#include <vector>

namespace skiff {

struct ArenaBuffer {
  int64_t bytes = 0;
  int64_t alignment = 64;  // a power of two
  int32_t first_use = 0;   // the first instant at which the buffer holds something
  int32_t last_use = 0;    // the last one, >= first_use
  // Buffers of one group lie at the base of the group, which the planner chooses, + group_offset.
  int32_t group = -1;        // any number from 0 on; negative: none
  int64_t group_offset = 0;  // >= 0 and a multiple of the alignment
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // one a buffer
  int64_t planned_bytes = 0;     // the size of the arena
  // The lower bound: the most bytes live at one instant. (No arena is smaller than a group, either:
  // slices of which few live at once may not come near it.)
  int64_t max_live_bytes = 0;
};

struct ArenaPlanOptions {
  // What the plan should fit into: the planner stops as soon as it does. 0: as little as possible.
  int64_t capacity = 0;
  // How many states the search may look at. Each places one buffer: with fewer than there are
  // buffers there is no search, nor with groups.
  int64_t max_search_nodes = 4000;
  // How many buffers and instants it may look at in all, which bounds its time whatever the set.
  int64_t max_search_steps = 100'000'000;
  // How long the planner may take, at least for the quick orders; 0: no limit. With one, plans may
  // differ from run to run.
  double time_limit_seconds = 0;
};

// Plans repeat, unless there is a time limit: they depend on nothing but the arguments. Error
// (kInvalidArgument) for negative bytes, an alignment that is no power of two, a life that ends
// before it begins, a negative or unaligned offset in a group, and two buffers of a group, named by
// their indices, that share a byte and an instant; kResourceExhausted where more than 2^60 bytes
// are live at once or in one group, or 2^61 in all groups.
ArenaPlan PlanArena(const std::vector<ArenaBuffer>& buffers, const ArenaPlanOptions& options = {});

}  // namespace skiff
