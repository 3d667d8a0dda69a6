// Groups of arena buffers: slices of one larger buffer, each with a life of its own.
//
// A group is a rigid piece with holes in it: what lies between its slices, and a slice that isn't
// alive yet or any more, is space for others. The groups are placed first, each as low as those
// before it let it, and all else around them by the quick orders (arena_orders.h). That is done
// with the largest group lowest and with the smallest one, from the bottom of the arena and from
// its top, so that the slices which come to life first may be the ones nearest to the end: then the
// space that they leave is one piece with the rest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/arena_orders.h"
#include "memory/arena_planner.h"

namespace skiff {

struct ArenaGroup {
  std::vector<size_t> slices;  // indices of its buffers, in their order
  int64_t bytes = 0;           // from its base to the end of the highest slice
  int64_t alignment = 1;       // of its base: the largest of a slice
};

// In the order of their first slices. Error (kInvalidArgument) for an offset in the group that is
// negative or not aligned, and for two slices of a group with a byte and an instant in common;
// kResourceExhausted for a group of more than 2^60 bytes.
std::vector<ArenaGroup> GroupsOf(std::span<const ArenaBuffer> buffers);

// The best placement found; ends early with one of at most `enough_bytes`. The buffers have bytes,
// of which no more than 2^60 are live at once. INT64_MAX bytes: the groups take more than 2^61.
OrderedPlacement PlaceWithGroups(std::span<const ArenaBuffer> buffers,
                                 std::span<const ArenaGroup> groups, int64_t enough_bytes);

}  // namespace skiff
