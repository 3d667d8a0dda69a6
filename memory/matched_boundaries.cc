#include "memory/matched_boundaries.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace skiff {
namespace {

// The most buffers on one side of a boundary. Each one more doubles the time to find the blocks.
constexpr size_t kMaxSide = 11;
// The most coincident sums at one boundary. With more, the sizes aren't arbitrary enough.
constexpr size_t kMaxMatches = 4096;

// Returns the smallest sets, if they are disjoint and every other set is a union of some of them;
// else nullopt, since some sums then coincide by accident.
std::optional<std::vector<uint32_t>> SmallestDisjointSets(std::vector<uint32_t> sets) {
  std::ranges::sort(sets, {}, [](uint32_t set) { return std::pair(std::popcount(set), set); });
  std::vector<uint32_t> smallest;
  for (const uint32_t set : sets) {
    uint32_t rest = set;
    for (const uint32_t part : smallest) {
      if ((set & part) == part) rest &= ~part;
    }
    if (rest == 0) continue;
    if (rest != set) return std::nullopt;
    for (const uint32_t part : smallest) {
      if ((set & part) != 0) return std::nullopt;
    }
    smallest.push_back(set);
  }
  return smallest;
}

}  // namespace

MatchedBoundaries::MatchedBoundaries(std::span<const SearchBuffer> buffers,
                                     std::span<const int64_t> slack)
    : buffers_(buffers.begin(), buffers.end()), blocks_at_(slack.size()) {
  std::vector<std::vector<size_t>> dying(slack.size()), born(slack.size());
  for (size_t i = 0; i < buffers_.size(); ++i) {
    dying[static_cast<size_t>(buffers_[i].last)].push_back(i);
    born[static_cast<size_t>(buffers_[i].first)].push_back(i);
  }
  for (const Side side : {kDying, kNew}) {
    block_of_[side].assign(buffers_.size(), -1);
    open_[side].assign(slack.size(), -1);
  }
  for (size_t i = 0; i + 1 < slack.size(); ++i) {
    // Only if both instants are full does what is born take exactly the space of what dies.
    if (slack[i] != 0 || slack[i + 1] != 0) continue;
    FindBlocks(static_cast<int32_t>(i), dying[i], born[i + 1]);
  }
}

// Returns all groups of members but the empty one.
std::vector<MatchedBoundaries::Group> MatchedBoundaries::GroupsOf(
    std::span<const size_t> members) const {
  std::vector<Group> groups(size_t{1} << members.size(), Group{0, 0});
  for (uint32_t set = 1; set < groups.size(); ++set) {
    const uint32_t rest = set & (set - 1);
    const size_t lowest = members[static_cast<size_t>(std::countr_zero(set))];
    groups[set] = {set, groups[rest].bytes + buffers_[lowest].size};
  }
  groups.erase(groups.begin());
  return groups;
}

// Enumerates all pairs of a set of dying and a set of new buffers with equal sums, 2^11 sets on
// each side at most, and keeps the smallest pairs as blocks.
void MatchedBoundaries::FindBlocks(int32_t boundary, std::span<const size_t> dying,
                                   std::span<const size_t> born) {
  if (dying.size() > kMaxSide || born.size() > kMaxSide) return;
  std::vector<Group> of_dying = GroupsOf(dying);
  std::ranges::stable_sort(of_dying, {}, &Group::bytes);
  std::vector<uint32_t> matches;
  for (const Group& group : GroupsOf(born)) {
    for (const Group& match : std::ranges::equal_range(of_dying, group.bytes, {}, &Group::bytes)) {
      matches.push_back(match.members | group.members << kMaxSide);
    }
    if (matches.size() > kMaxMatches) return;
  }
  const std::optional<std::vector<uint32_t>> sets = SmallestDisjointSets(std::move(matches));
  if (!sets) return;
  for (const uint32_t set : *sets) {
    const auto id = static_cast<int32_t>(blocks_.size());
    blocks_.emplace_back();
    blocks_at_[static_cast<size_t>(boundary)].push_back(id);
    for (size_t i = 0; i < dying.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      block_of_[kDying][dying[i]] = id;
      blocks_.back().bytes += buffers_[dying[i]].size;
    }
    for (size_t i = 0; i < born.size(); ++i) {
      if ((set >> (kMaxSide + i) & 1) != 0) block_of_[kNew][born[i]] = id;
    }
  }
}

bool MatchedBoundaries::AllowsSide(Side side, int32_t id, int32_t instant, int64_t offset,
                                   int64_t size, std::span<const int64_t> heights) const {
  const int32_t open = open_[side][static_cast<size_t>(instant)];
  if (open >= 0 && open != id) return false;
  const int32_t boundary = side == kDying ? instant : instant - 1;
  if (boundary < 0) return true;
  const int32_t beyond = side == kDying ? instant + 1 : instant - 1;
  for (const int32_t other : blocks_at_[static_cast<size_t>(boundary)]) {
    const Block& block = blocks_[static_cast<size_t>(other)];
    if (other == id && block.IsBegun()) {
      // A block is filled from its base without gaps.
      if (offset != block.base + block.placed[side]) return false;
    } else if (other == id) {
      // The block takes the same interval on both sides, so beyond the boundary it must still be
      // free.
      if (heights[static_cast<size_t>(beyond)] > offset) return false;
    } else if (block.IsBegun() && block.placed[side] < block.bytes) {
      // The interval of a block that isn't full yet is for its own buffers.
      if (offset < block.base + block.bytes && block.base < offset + size) return false;
    }
  }
  return true;
}

bool MatchedBoundaries::Allows(size_t buffer, int64_t offset,
                               std::span<const int64_t> heights) const {
  const SearchBuffer& b = buffers_[buffer];
  for (int32_t i = b.first; i < b.last; ++i) {
    // The skyline at this boundary is inside the interval of an open block, where a buffer that
    // lives across the boundary can't be.
    const bool is_block_open =
        open_[kDying][static_cast<size_t>(i)] >= 0 || open_[kNew][static_cast<size_t>(i) + 1] >= 0;
    if (is_block_open) return false;
  }
  return AllowsSide(kNew, block_of_[kNew][buffer], b.first, offset, b.size, heights) &&
         AllowsSide(kDying, block_of_[kDying][buffer], b.last, offset, b.size, heights);
}

void MatchedBoundaries::Place(size_t buffer, int64_t offset) {
  for (const Side side : {kDying, kNew}) {
    const int32_t id = block_of_[side][buffer];
    if (id < 0) continue;
    Block& block = blocks_[static_cast<size_t>(id)];
    if (!block.IsBegun()) block.base = offset;
  }
  Add(buffer, buffers_[buffer].size);
}

void MatchedBoundaries::Remove(size_t buffer) { Add(buffer, -buffers_[buffer].size); }

void MatchedBoundaries::Add(size_t buffer, int64_t bytes) {
  const SearchBuffer& b = buffers_[buffer];
  for (const Side side : {kDying, kNew}) {
    const int32_t id = block_of_[side][buffer];
    if (id < 0) continue;
    Block& block = blocks_[static_cast<size_t>(id)];
    block.placed[side] += bytes;
    const bool is_open = block.placed[side] > 0 && block.placed[side] < block.bytes;
    open_[side][static_cast<size_t>(side == kDying ? b.last : b.first)] = is_open ? id : -1;
  }
}

}  // namespace skiff
