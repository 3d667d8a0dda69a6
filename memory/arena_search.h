// Decides whether buffers fit into a given capacity: a depth-first search over the skyline.
//
// The search considers only pushed-down placements, in which every buffer is at offset 0 or
// directly on top of another (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
// Hardware-Accelerated Machine Learning", ASPLOS 2023: canonical solutions). That loses nothing,
// since pushing buffers down keeps a placement valid. The search builds placements from the bottom,
// as strip packing by the skyline does (Burke, Kendall, Whitwell, "A New Placement Heuristic for
// the Orthogonal Stock-Cutting Problem", Operations Research 52(4), 2004), but may continue with
// any valley:
//
// - A valley is a run of instants of equal height between higher walls. A buffer on its floor must
//   live within the valley, so few buffers can be the leftmost there, and few the rightmost. The
//   search fills the valley with the fewest choices first.
// - Space left free under the skyline is lost for good. An instant can lose no more than its slack:
//   the capacity less all bytes live at that instant. Where the slack is 0, only buffers that fit
//   exactly are choices.
// - Only buffers that live between two walls can fill the space between the walls, up to the height
//   of the lower wall. If they are too few, the search abandons the state.
// - If no unplaced buffer spans a boundary between instants, the two sides are solved separately.
// - The search remembers a failed state by the buffers left to place and the skyline, so a state is
//   recognised whatever the order that led to it.
// - A dive that gets stuck is restarted with other preferences, alternating between joined buffers
//   (joined_buffers.h), matched boundaries (matched_boundaries.h) and neither.
//
// Deterministic: equal arguments give equal results unless `stop` ends the search.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "memory/search_buffer.h"

namespace skiff {

enum class SearchOutcome {
  kFound,
  kImpossible,  // no such placement exists, or, with an alignment above 1, none was found
  kStopped,     // out of nodes or steps, or told to stop
};

struct SearchLimits {
  int64_t max_nodes = 0;  // states to visit
  // Buffers and instants to examine, which bounds the time. The search ends with the state in which
  // it reaches the limit.
  int64_t max_steps = INT64_MAX;
  uint64_t seed = 0;                // selects the preferences
  std::function<bool()> stop = {};  // called now and then; true ends the search
};

struct SearchResult {
  SearchOutcome outcome = SearchOutcome::kStopped;
  std::vector<int64_t> offsets = {};  // one per buffer if found
  int64_t nodes = 0;                  // states visited
  int64_t steps = 0;                  // buffers and instants examined
};

// Searches for offsets within `capacity`, which has the unit of the buffers' sizes. At every
// instant the live sizes must sum to less than 2^61.
SearchResult SearchArena(std::span<const SearchBuffer> buffers, int64_t capacity,
                         const SearchLimits& limits);

}  // namespace skiff
