// Quick placement of buffers in an arena: one after another, in several orders.
//
// - Online: in order of first use, into the smallest or the lowest gap free at that instant; and
//   the same backwards through time.
// - From the peak: stacks the buffers that are live at the instant with the most live bytes, so
//   that no space is lost there, and walks from this instant through time in both directions as
//   above. Nested lives, as in a training step, come out at or near the lower bound.
// - Greedy: by size, by area, by length of life (Pisarchyk & Lee, arXiv 2001.03288, offset
//   calculation) and by the load of the busiest instant. Each buffer takes the lowest or the
//   smallest gap among the placed buffers with a life that meets the buffer's.
//
// The first two take O(n log n) time plus the gaps they look at. The greedy orders visit every pair
// of buffers whose lives meet. A budget of work units bounds everything: for thousands of buffers
// whose lives all meet, some orders are skipped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/arena_buffer.h"

namespace skiff {

struct OrderedPlacement {
  std::vector<int64_t> offsets;
  int64_t planned_bytes = INT64_MAX;
};

// Returns the best placement of all orders, the first of at most `enough_bytes` if there is one.
// All buffers must have bytes, of which at most 2^60 are live at once. `fixed_offsets` is empty or
// has one entry per buffer; an entry that isn't negative is the offset of the buffer, below 2^61.
// The other buffers are placed around the fixed buffers.
OrderedPlacement PlaceInOrders(std::span<const ArenaBuffer> buffers, int64_t enough_bytes,
                               std::span<const int64_t> fixed_offsets = {});

}  // namespace skiff
