// Placement of groups of arena buffers. A group is one large buffer whose slices have separate
// lives.
//
// A group is a rigid piece with holes. Other buffers may use the space between its slices, and the
// space of a slice before its life begins and after it ends. Groups are placed first, each as low
// as the earlier ones allow; the quick orders (arena_orders.h) then place all other buffers around
// them. This is done four times: with the largest and with the smallest group placed first, and
// from the bottom and from the top of the arena. From the top, the slices that come to life first
// can be nearest to the end, which leaves space contiguous with the rest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/arena_buffer.h"
#include "memory/arena_orders.h"

namespace skiff {

struct ArenaGroup {
  std::vector<size_t> slices;  // indices of its buffers, in input order
  int64_t bytes = 0;           // from its base to the end of the highest slice
  int64_t alignment = 1;       // of its base: the largest of a slice
};

// Returns the groups in the order of their first slices. Throws Error (kInvalidArgument) if an
// offset within a group is negative or unaligned, or if two slices of a group share a byte at some
// instant, and (kResourceExhausted) for a group of more than 2^60 bytes.
std::vector<ArenaGroup> GroupsOf(std::span<const ArenaBuffer> buffers);

// Returns the best placement found, the first of at most `enough_bytes` if there is one. All
// buffers must have bytes, of which at most 2^60 are live at once. Returns planned_bytes =
// INT64_MAX if the groups take more than 2^61 bytes.
OrderedPlacement PlaceWithGroups(std::span<const ArenaBuffer> buffers,
                                 std::span<const ArenaGroup> groups, int64_t enough_bytes);

}  // namespace skiff
