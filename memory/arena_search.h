// Finds out whether buffers fit into a given capacity: a depth-first search over the skyline.
//
// It looks only at pushed-down placements, where every buffer lies at offset 0 or upon another one
// (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
// Learning", ASPLOS 2023: canonical solutions). That is no loss, as pushing down what can be pushed
// keeps a placement valid. They are built from the bottom, as in strip packing by the skyline
// (Burke, Kendall, Whitwell, "A New Placement Heuristic for the Orthogonal Stock-Cutting Problem",
// Operations Research 52(4), 2004), but any valley may be next:
//
//   - A valley is a run of instants of equal height between higher walls. What comes to lie on its
//     floor must live within it, so its leftmost buffer is one of few, and so is its rightmost one.
//     The valley with the fewest choices is filled first.
//   - What is left free under the skyline is lost for good. An instant can lose no more than its
//     slack, which is the capacity less all bytes live then; with a full capacity that is nothing,
//     and only buffers that fit exactly are choices at all.
//   - What lies between two walls up to the lower one's height can only be filled by buffers that
//     live between them; if they are too few, the state is given up.
//   - Where no buffer that is left spans a boundary, both sides are solved apart.
//   - A state that failed is remembered by what is left to place and the skyline, so the order in
//     which it was reached doesn't matter.
//   - Dives that get stuck are begun anew with other preferences, in turn with joined buffers
//     (joined_buffers.h), with matched boundaries (matched_boundaries.h) and with neither.
//
// Deterministic: the same arguments give the same result, unless `stop` ends the search.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "memory/search_buffer.h"

namespace skiff {

enum class SearchOutcome {
  kFound,
  kImpossible,  // there is no such placement (where all alignments are 1, else just not found)
  kStopped,     // out of nodes or steps, or told to stop
};

struct SearchLimits {
  int64_t max_nodes = 0;  // states to look at
  // The time goes by these: how many buffers and instants may be looked at. The state in which they
  // are used up is the last one.
  int64_t max_steps = INT64_MAX;
  uint64_t seed = 0;                // of the preferences
  std::function<bool()> stop = {};  // asked now and then; true ends the search
};

struct SearchResult {
  SearchOutcome outcome = SearchOutcome::kStopped;
  std::vector<int64_t> offsets = {};  // one a buffer, if found
  int64_t nodes = 0;                  // looked at
  int64_t steps = 0;                  // taken
};

// The capacity is in the unit of the buffers' sizes. The sizes that are live at any one instant sum
// to less than 2^61.
SearchResult SearchArena(std::span<const SearchBuffer> buffers, int64_t capacity,
                         const SearchLimits& limits);

}  // namespace skiff
