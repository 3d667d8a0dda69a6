// Quick placements of buffers in an arena: one after another, in several orders.
//
//   - Online, by first use, into the smallest or the lowest gap that is free at that moment; the
//     same from the end of time to its beginning.
//   - From the peak: what is live at the instant with the most bytes is stacked, so that nothing is
//     lost there, and time is walked from it in both directions as above. Lives that nest, as those
//     of a training step do, come out at or near the bound.
//   - Greedy by size, by area, by length of life (Pisarchyk & Lee, arXiv 2001.03288, offset
//     calculation) and by the load of the busiest instant, each buffer in the lowest or the
//     smallest gap among all placed ones that it meets.
//
// The time of the former is O(n log n) and the number of gaps; the latter visit each pair of
// buffers that meet. All of it is bounded by a count of steps, so that thousands of buffers that
// all meet leave some orders out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/arena_planner.h"

namespace skiff {

struct OrderedPlacement {
  std::vector<int64_t> offsets;
  int64_t planned_bytes = INT64_MAX;
};

// The best of all orders; ends early with one of at most `enough_bytes`. The buffers have bytes,
// of which no more than 2^60 are live at once. `fixed_offsets` may have one for each buffer: where
// it isn't negative the buffer lies there (below 2^61), and everything else around it.
OrderedPlacement PlaceInOrders(std::span<const ArenaBuffer> buffers, int64_t enough_bytes,
                               std::span<const int64_t> fixed_offsets = {});

}  // namespace skiff
