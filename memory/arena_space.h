// The free space of an arena while buffers are placed in it one after another, through time, and
// the buffers whose offsets are given before.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "memory/arena_planner.h"

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

// Buffers whose offsets are given. They are in the way of what lives with them at any time.
class FixedBuffers {
 public:
  // Those with offsets that aren't negative. Follows the lives, which may change.
  FixedBuffers(std::span<const ArenaBuffer> buffers, std::span<const int64_t> offsets,
               const std::vector<ArenaLife>& lives);

  bool empty() const { return fixed_.empty(); }

  // An offset in [begin, end) at which what is asked for fits beside those that are in the way, in
  // the lowest or the smallest space between them; -1: there is none. Adds what it looks at to
  // *steps.
  int64_t PlaceBeside(int64_t begin, int64_t end, const ArenaRequest& request, GapFit fit,
                      int64_t* steps) const;

 private:
  struct Fixed {
    int64_t begin;
    int64_t end;
    size_t index;
  };

  const std::vector<ArenaLife>& lives_;
  std::vector<Fixed> fixed_;           // by their beginnings
  std::vector<int64_t> highest_ends_;  // by fixed one: of it and all before
};

// The free space of an arena without an end at one instant. Fixed buffers are free until they are
// taken, but nothing is placed in their way.
class FreeSpace {
 public:
  // For the smallest gap, gaps are looked at only while there are fewer than max_steps.
  FreeSpace(const FixedBuffers& fixed, int64_t max_steps) : fixed_(fixed), max_steps_(max_steps) {}

  // The offset of what it takes. Adds the gaps and fixed buffers that it looks at to *steps.
  int64_t Take(const ArenaRequest& request, GapFit fit, int64_t* steps);
  // What a fixed buffer takes.
  void TakeAt(int64_t offset, int64_t bytes);
  void Return(int64_t begin, int64_t bytes);

 private:
  using Gaps = std::map<int64_t, int64_t>;  // begin -> end
  struct Place {
    Gaps::iterator gap;  // the end: above all gaps
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
  int64_t end_ = 0;                                // above is nothing
};

}  // namespace skiff
