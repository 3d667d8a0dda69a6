// The free space of an arena while buffers are placed one after another, in order of time, around
// buffers whose offsets are given. Internal to the quick orders (arena_orders.h).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "memory/arena_buffer.h"

namespace skiff {

enum class GapFit { kLowest, kSmallest };

struct ArenaLife {  // the first and the last instant
  int32_t first;
  int32_t last;
};

struct ArenaRequest {
  int64_t bytes;
  int64_t alignment;
  ArenaLife life;
};

// Buffers whose offsets are given. Each blocks its space for every buffer whose life meets the
// fixed buffer's.
class FixedBuffers {
 public:
  // Holds the buffers whose offset isn't negative. Keeps a reference to `lives`, which may change.
  FixedBuffers(std::span<const ArenaBuffer> buffers, std::span<const int64_t> offsets,
               const std::vector<ArenaLife>& lives);

  bool empty() const { return fixed_.empty(); }

  // Returns an offset in [begin, end) where the request fits between the fixed buffers with lives
  // that meet the request's, in the lowest or the smallest gap; -1 if there is none. Adds the
  // number of buffers examined to *steps.
  int64_t PlaceBeside(int64_t begin, int64_t end, const ArenaRequest& request, GapFit fit,
                      int64_t* steps) const;

 private:
  struct Fixed {
    int64_t begin;
    int64_t end;
    size_t index;
  };

  const std::vector<ArenaLife>& lives_;
  std::vector<Fixed> fixed_;           // in ascending order of begin
  std::vector<int64_t> highest_ends_;  // of fixed_[0] … fixed_[i]
};

// The free space of an unbounded arena at one instant. The space of fixed buffers counts as free
// until TakeAt, but requests that would be in their way aren't placed there.
class FreeSpace {
 public:
  // The search for the smallest gap stops after max_steps gaps and fixed buffers.
  FreeSpace(const FixedBuffers& fixed, int64_t max_steps) : fixed_(fixed), max_steps_(max_steps) {}

  // Takes space for the request and returns its offset. Adds the number of gaps and fixed buffers
  // examined to *steps.
  int64_t Take(const ArenaRequest& request, GapFit fit, int64_t* steps);
  // Takes the space of a fixed buffer.
  void TakeAt(int64_t offset, int64_t bytes);
  void Return(int64_t begin, int64_t bytes);

 private:
  using Gaps = std::map<int64_t, int64_t>;  // begin -> end
  struct Place {
    Gaps::iterator gap;  // end(): above all gaps
    int64_t offset;
  };

  int64_t PlaceBetween(int64_t begin, int64_t end, const ArenaRequest& request, GapFit fit,
                       int64_t* steps) const;
  Place AboveAll(const ArenaRequest& request, int64_t* steps);
  Place LowestGap(const ArenaRequest& request, int64_t* steps);
  Place SmallestGap(const ArenaRequest& request, int64_t* steps);
  void Occupy(Gaps::iterator gap, int64_t offset, int64_t bytes);
  Gaps::iterator EraseGap(Gaps::iterator gap);
  void AddGap(int64_t begin, int64_t end);

  const FixedBuffers& fixed_;
  const int64_t max_steps_;
  Gaps gaps_;
  std::set<std::pair<int64_t, int64_t>> by_size_;  // size, begin
  int64_t end_ = 0;                                // all space from here on is free
};

}  // namespace skiff
