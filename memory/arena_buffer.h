// A buffer of an arena, for the algorithms that place buffers.
//
// The algorithms don't know tensors. A buffer has bytes, an alignment and a closed interval of
// instants, its life. Buffers may be slices of one larger buffer, a group: their distances in the
// arena are given. Each slice still has a life of its own.
#pragma once

#include <cstdint>

namespace skiff {

struct ArenaBuffer {
  int64_t bytes = 0;
  int64_t alignment = 64;  // a power of two
  int32_t first_use = 0;   // the first instant of its life
  int32_t last_use = 0;    // the last instant of its life, >= first_use
  // A buffer of a group is placed at the group's base, which the planner chooses, + group_offset.
  int32_t group = -1;        // >= 0; negative: in no group
  int64_t group_offset = 0;  // >= 0 and a multiple of the alignment
};

}  // namespace skiff
