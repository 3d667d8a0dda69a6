#include "memory/arena_groups.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr int64_t kMaxGroupBytes = int64_t{1} << 60;
constexpr int64_t kMaxBytesOfGroups = int64_t{1} << 61;
// The most pairs of slices of different groups to compare; after that, a group goes above all
// others.
constexpr size_t kMaxPairs = 2'000'000;

void CheckSlice(const ArenaBuffer& buffer, size_t index) {
  const int64_t offset = buffer.group_offset;
  SKIFF_ENFORCE(offset >= 0 && offset % buffer.alignment == 0, kInvalidArgument, "arena buffer ",
                index, " is at offset ", offset, " in group ", buffer.group,
                ": expected a multiple of its alignment, ", buffer.alignment);
  SKIFF_ENFORCE(offset <= kMaxGroupBytes - buffer.bytes, kResourceExhausted, "arena buffer ", index,
                " of ", buffer.bytes, " bytes is at offset ", offset, " in group ", buffer.group,
                ": expected at most ", kMaxGroupBytes, " bytes in all");
}

// Walks through time and compares each new slice with its neighbours by offset among those that
// live then. If these don't overlap it, no other one does.
void CheckThatSlicesAreApart(std::span<const ArenaBuffer> buffers, const ArenaGroup& group) {
  std::vector<std::tuple<int32_t, bool, size_t>> events;  // instant, is a death, slice
  for (const size_t i : group.slices) {
    if (buffers[i].bytes == 0) continue;
    events.emplace_back(buffers[i].first_use, false, i);
    events.emplace_back(buffers[i].last_use, true, i);
  }
  std::ranges::sort(events);
  std::map<int64_t, size_t> live;  // by offset
  const auto end_of = [&](size_t i) { return buffers[i].group_offset + buffers[i].bytes; };
  const auto check = [&](size_t low, size_t high) {
    SKIFF_ENFORCE(end_of(low) <= buffers[high].group_offset, kInvalidArgument, "arena buffers ",
                  std::min(low, high), " and ", std::max(low, high), " overlap in group ",
                  buffers[low].group, " while both live: one ends at ", end_of(low),
                  ", the other begins at ", buffers[high].group_offset);
  };
  for (const auto& [instant, is_death, i] : events) {
    if (is_death) {
      live.erase(buffers[i].group_offset);
      continue;
    }
    const auto above = live.lower_bound(buffers[i].group_offset);
    if (above != live.end()) check(i, above->second);
    if (above != live.begin()) check(std::prev(above)->second, i);
    live.emplace(buffers[i].group_offset, i);
  }
}

bool LivesMeet(const ArenaBuffer& a, const ArenaBuffer& b) {
  return a.first_use <= b.last_use && b.first_use <= a.last_use;
}

// Stacks groups, or fits them into each other's free space.
class GroupStack {
 public:
  explicit GroupStack(std::span<const ArenaBuffer> buffers)
      : buffers_(buffers), offsets_(buffers.size(), -1) {}

  void Add(const ArenaGroup& group) {
    const int64_t base = LowestBase(group);
    for (const size_t i : group.slices) {
      offsets_[i] = base + buffers_[i].group_offset;
      placed_.push_back(i);
    }
    end_ = std::max(end_, base + group.bytes);
  }

  // By buffer; -1: in no group.
  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t end() const { return end_; }

 private:
  // Returns the lowest base at which no slice of the group shares a byte with a placed slice while
  // both live. Each such pair of slices forbids an interval of bases. The lowest allowed base is 0
  // or the (rounded) end of one of these intervals, so one sweep over them in ascending order finds
  // it.
  int64_t LowestBase(const ArenaGroup& group) {
    pairs_ += group.slices.size() * placed_.size();
    if (pairs_ > kMaxPairs) return RoundUp(end_, group.alignment);
    std::vector<std::pair<int64_t, int64_t>>
        taken;  // no base may be above the first and below the second
    for (const size_t i : group.slices) {
      const ArenaBuffer& slice = buffers_[i];
      for (const size_t j : placed_) {
        if (!LivesMeet(slice, buffers_[j])) continue;
        const int64_t begin = offsets_[j] - slice.group_offset;
        taken.emplace_back(begin - slice.bytes, begin + buffers_[j].bytes);
      }
    }
    std::ranges::sort(taken);
    int64_t base = 0;
    for (const auto& [begin, end] : taken) {
      // All later intervals begin here or higher, so none of them forbids this base.
      if (base <= begin) break;
      if (base < end) base = RoundUp(end, group.alignment);
    }
    return base;
  }

  std::span<const ArenaBuffer> buffers_;
  std::vector<int64_t> offsets_;
  std::vector<size_t> placed_;
  int64_t end_ = 0;
  size_t pairs_ = 0;
};

// Buffers and groups mirrored, as seen from the top of the arena: placing these from the bottom
// places the originals from the top.
struct UpsideDown {
  std::vector<ArenaBuffer> buffers;
  std::vector<ArenaGroup> groups;
  int64_t alignment = 1;  // of the top

  UpsideDown(std::span<const ArenaBuffer> from, std::span<const ArenaGroup> their_groups)
      : buffers(from.begin(), from.end()), groups(their_groups.begin(), their_groups.end()) {
    for (ArenaBuffer& buffer : buffers) {
      alignment = std::max(alignment, buffer.alignment);
      // Mirrored, its end must be aligned, since that is where the original begins.
      if (buffer.group < 0) buffer.bytes = RoundUp(buffer.bytes, buffer.alignment);
    }
    for (ArenaGroup& group : groups) {
      alignment = std::max(alignment, group.alignment);
      group.bytes = RoundUp(group.bytes, group.alignment);
      for (const size_t i : group.slices) {
        buffers[i].group_offset = group.bytes - buffers[i].group_offset - buffers[i].bytes;
      }
    }
  }

  // Turns a placement of the mirrored buffers into one of the originals.
  OrderedPlacement TurnBack(std::span<const ArenaBuffer> from, OrderedPlacement placement) const {
    if (placement.planned_bytes == INT64_MAX) return placement;
    int64_t top = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      // No group's base may become negative.
      const int64_t below = from[i].group < 0 ? 0 : from[i].group_offset;
      top = std::max(top, placement.offsets[i] + buffers[i].bytes + below);
    }
    top = RoundUp(top, alignment);
    placement.planned_bytes = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      placement.offsets[i] = top - placement.offsets[i] - buffers[i].bytes;
      placement.planned_bytes =
          std::max(placement.planned_bytes, placement.offsets[i] + from[i].bytes);
    }
    return placement;
  }
};

OrderedPlacement PlaceGroupsFirst(std::span<const ArenaBuffer> buffers,
                                  const std::vector<const ArenaGroup*>& order,
                                  int64_t enough_bytes) {
  GroupStack stack(buffers);
  for (const ArenaGroup* group : order) {
    stack.Add(*group);
    if (stack.end() > kMaxBytesOfGroups) return {};
  }
  return PlaceInOrders(buffers, enough_bytes, stack.offsets());
}

// Returns the better of two placements: with the largest group placed first, and with the smallest
// one.
OrderedPlacement PlaceGroupsFirst(std::span<const ArenaBuffer> buffers,
                                  std::span<const ArenaGroup> groups, int64_t enough_bytes) {
  std::vector<const ArenaGroup*> order;
  for (const ArenaGroup& group : groups) order.push_back(&group);
  std::ranges::stable_sort(order, std::greater(), &ArenaGroup::bytes);
  OrderedPlacement best = PlaceGroupsFirst(buffers, order, enough_bytes);
  if (order.size() == 1 || best.planned_bytes <= enough_bytes) return best;
  std::ranges::reverse(order);
  OrderedPlacement other = PlaceGroupsFirst(buffers, order, enough_bytes);
  return other.planned_bytes < best.planned_bytes ? other : best;
}

}  // namespace

std::vector<ArenaGroup> GroupsOf(std::span<const ArenaBuffer> buffers) {
  std::map<int32_t, size_t> index_of;  // by number
  std::vector<ArenaGroup> groups;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ArenaBuffer& buffer = buffers[i];
    if (buffer.group < 0) continue;
    CheckSlice(buffer, i);
    const auto [found, is_new] = index_of.try_emplace(buffer.group, groups.size());
    if (is_new) groups.emplace_back();
    ArenaGroup& group = groups[found->second];
    group.slices.push_back(i);
    group.bytes = std::max(group.bytes, buffer.group_offset + buffer.bytes);
    group.alignment = std::max(group.alignment, buffer.alignment);
  }
  for (const ArenaGroup& group : groups) CheckThatSlicesAreApart(buffers, group);
  return groups;
}

OrderedPlacement PlaceWithGroups(std::span<const ArenaBuffer> buffers,
                                 std::span<const ArenaGroup> groups, int64_t enough_bytes) {
  // No arena is smaller than its largest group, so there is no point in trying for less.
  for (const ArenaGroup& group : groups) enough_bytes = std::max(enough_bytes, group.bytes);
  OrderedPlacement best = PlaceGroupsFirst(buffers, groups, enough_bytes);
  if (best.planned_bytes <= enough_bytes) return best;
  const UpsideDown down(buffers, groups);
  OrderedPlacement other =
      down.TurnBack(buffers, PlaceGroupsFirst(down.buffers, down.groups, enough_bytes));
  return other.planned_bytes < best.planned_bytes ? other : best;
}

}  // namespace skiff
