// Sets of arena buffers for tests, and a check of placements that shares nothing with the planner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/arena_planner.h"

namespace skiff {

struct RectangleCuts {
  int32_t pieces = 100;
  int32_t instants = 1000;
  int64_t bytes = int64_t{1} << 20;
  bool with_pinwheels = false;  // five pieces at once, which no straight cut separates
  uint32_t seed = 0;
};

// Returns the pieces of a rectangle of time and memory, in random order, with alignment 1. The best
// plan takes `bytes` bytes.
std::vector<ArenaBuffer> CutRectangle(const RectangleCuts& cuts);

// Returns buffers of which `bytes` bytes are live at every instant: where some die, new ones take
// as many bytes. There may be no plan with so few bytes.
std::vector<ArenaBuffer> FullLoad(int32_t instants, int64_t bytes, uint32_t seed);

// Returns buffers of which about half are slices of a few groups: of any size, including 0, with
// alignments from 1 to 256 and gaps between them; some share space at different times.
std::vector<ArenaBuffer> RandomSlices(uint32_t seed);

// Returns the mistake in a placement, or "": an offset that is negative or not aligned; a buffer
// beyond planned_bytes; two buffers with bytes that share a byte and an instant; a slice outside
// its place in the group; a group's base that is negative or not aligned for all slices; and the
// count of offsets. O(n log n).
std::string PlacementFault(const std::vector<ArenaBuffer>& buffers,
                           const std::vector<int64_t>& offsets, int64_t planned_bytes);

}  // namespace skiff
