#include "memory/arena_space.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "framework/base/element_count.h"

namespace skiff {
namespace {

// This many fixed buffers, which are contiguous in memory, take as long to examine as one gap,
// which is in a tree.
constexpr int64_t kFixedPerStep = 8;

bool Meet(const ArenaLife& a, const ArenaLife& b) { return a.first <= b.last && b.first <= a.last; }

// Returns the lowest offset in [begin, end) at which the request fits, or -1.
int64_t PlaceIn(int64_t begin, int64_t end, const ArenaRequest& request) {
  const int64_t offset = RoundUp(begin, request.alignment);
  return offset + request.bytes <= end ? offset : -1;
}

}  // namespace

FixedBuffers::FixedBuffers(std::span<const ArenaBuffer> buffers, std::span<const int64_t> offsets,
                           const std::vector<ArenaLife>& lives)
    : lives_(lives) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] >= 0) fixed_.push_back({offsets[i], offsets[i] + buffers[i].bytes, i});
  }
  std::ranges::stable_sort(fixed_, {}, &Fixed::begin);
  int64_t highest = 0;
  // The ends aren't sorted, but their running maximum is: a binary search over it skips all fixed
  // buffers below a gap.
  for (const Fixed& fixed : fixed_) {
    highest = std::max(highest, fixed.end);
    highest_ends_.push_back(highest);
  }
}

int64_t FixedBuffers::PlaceBeside(int64_t begin, int64_t end, const ArenaRequest& request,
                                  GapFit fit, int64_t* steps) const {
  int64_t found = -1;
  int64_t found_bytes = 0;
  const auto look_below = [&](int64_t limit) {
    const int64_t offset = PlaceIn(begin, limit, request);
    if (offset < 0 || (found >= 0 && limit - begin >= found_bytes)) return;
    found = offset;
    found_bytes = limit - begin;
  };
  const auto first_above = std::ranges::upper_bound(highest_ends_, begin);
  const auto first = static_cast<size_t>(first_above - highest_ends_.begin());
  size_t i = first;
  for (; i < fixed_.size() && fixed_[i].begin < end; ++i) {
    if (fit == GapFit::kLowest && found >= 0) break;
    if (fixed_[i].end <= begin || !Meet(lives_[fixed_[i].index], request.life)) continue;
    // `begin` is the end of all fixed buffers so far that meet the request. Since they are in
    // ascending order of their beginnings, the space from there to the next one is free.
    look_below(fixed_[i].begin);
    begin = fixed_[i].end;
  }
  *steps += static_cast<int64_t>(i - first) / kFixedPerStep;
  if (fit == GapFit::kSmallest || found < 0) look_below(end);
  return found;
}

int64_t FreeSpace::Take(const ArenaRequest& request, GapFit fit, int64_t* steps) {
  const auto [gap, offset] =
      fit == GapFit::kLowest ? LowestGap(request, steps) : SmallestGap(request, steps);
  Occupy(gap, offset, request.bytes);
  return offset;
}

void FreeSpace::TakeAt(int64_t offset, int64_t bytes) {
  Occupy(offset >= end_ ? gaps_.end() : std::prev(gaps_.upper_bound(offset)), offset, bytes);
}

void FreeSpace::Return(int64_t begin, int64_t bytes) {
  int64_t end = begin + bytes;
  auto next = gaps_.lower_bound(begin);
  if (next != gaps_.end() && next->first == end) {
    end = next->second;
    next = EraseGap(next);
  }
  if (next != gaps_.begin() && std::prev(next)->second == begin) {
    begin = std::prev(next)->first;
    EraseGap(std::prev(next));
  }
  // Free space at the top isn't a gap: everything from end_ on is free.
  if (end == end_) {
    end_ = begin;
  } else {
    AddGap(begin, end);
  }
}

int64_t FreeSpace::PlaceBetween(int64_t begin, int64_t end, const ArenaRequest& request, GapFit fit,
                                int64_t* steps) const {
  return fixed_.empty() ? PlaceIn(begin, end, request)
                        : fixed_.PlaceBeside(begin, end, request, fit, steps);
}

FreeSpace::Place FreeSpace::AboveAll(const ArenaRequest& request, int64_t* steps) {
  const int64_t end = std::numeric_limits<int64_t>::max();
  return {gaps_.end(), PlaceBetween(end_, end, request, GapFit::kLowest, steps)};
}

FreeSpace::Place FreeSpace::LowestGap(const ArenaRequest& request, int64_t* steps) {
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    ++*steps;
    const int64_t offset = PlaceBetween(gap->first, gap->second, request, GapFit::kLowest, steps);
    if (offset >= 0) return {gap, offset};
  }
  return AboveAll(request, steps);
}

FreeSpace::Place FreeSpace::SmallestGap(const ArenaRequest& request, int64_t* steps) {
  for (auto size = by_size_.lower_bound({request.bytes, 0}); size != by_size_.end(); ++size) {
    // Mostly one of the first gaps fits. With fixed buffers or several alignments, many may not.
    if (*steps >= max_steps_) break;
    ++*steps;
    const auto gap = gaps_.find(size->second);
    const int64_t offset = PlaceBetween(gap->first, gap->second, request, GapFit::kSmallest, steps);
    if (offset >= 0) return {gap, offset};
  }
  return AboveAll(request, steps);
}

void FreeSpace::Occupy(Gaps::iterator gap, int64_t offset, int64_t bytes) {
  int64_t begin = end_;
  int64_t end = offset + bytes;
  if (gap == gaps_.end()) {
    end_ = end;
  } else {
    begin = gap->first;
    end = gap->second;
    EraseGap(gap);
  }
  AddGap(begin, offset);
  AddGap(offset + bytes, end);
}

FreeSpace::Gaps::iterator FreeSpace::EraseGap(Gaps::iterator gap) {
  by_size_.erase({gap->second - gap->first, gap->first});
  return gaps_.erase(gap);
}

void FreeSpace::AddGap(int64_t begin, int64_t end) {
  if (begin == end) return;
  gaps_.emplace(begin, end);
  by_size_.emplace(end - begin, begin);
}

}  // namespace skiff
