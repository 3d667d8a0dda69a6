#include "memory/arena_planner.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "memory/arena_groups.h"
#include "memory/arena_orders.h"
#include "memory/arena_search.h"

namespace skiff {
namespace {

// With these limits no sum overflows.
constexpr int64_t kMaxLiveBytes = int64_t{1} << 60;
constexpr int64_t kMaxAlignment = int64_t{1} << 32;

void Check(const ArenaBuffer& buffer) {
  SKIFF_ENFORCE(buffer.bytes >= 0, kInvalidArgument, "arena buffer of ", buffer.bytes, " bytes");
  SKIFF_ENFORCE(buffer.first_use <= buffer.last_use, kInvalidArgument,
                "arena buffer with first use ", buffer.first_use, " after last use ",
                buffer.last_use);
  const int64_t alignment = buffer.alignment;
  SKIFF_ENFORCE(alignment > 0 && alignment <= kMaxAlignment && (alignment & (alignment - 1)) == 0,
                kInvalidArgument, "arena buffer with alignment ", alignment,
                ": expected a power of two, at most ", kMaxAlignment);
  SKIFF_ENFORCE(buffer.bytes <= kMaxLiveBytes, kResourceExhausted, "arena buffer of ", buffer.bytes,
                " bytes: expected at most ", kMaxLiveBytes);
}

// Returns the most bytes live at one instant if each buffer takes a multiple of `unit`.
int64_t MaxLiveBytes(std::span<const ArenaBuffer> buffers, int64_t unit) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // instant, bytes
  for (const ArenaBuffer& buffer : buffers) {
    const int64_t bytes = RoundUp(buffer.bytes, unit);
    changes.emplace_back(buffer.first_use, bytes);
    changes.emplace_back(int64_t{buffer.last_use} + 1, -bytes);
  }
  std::ranges::sort(changes);  // deaths, which are negative, before births at the same instant
  int64_t live = 0;
  int64_t most = 0;
  for (const auto& [instant, bytes] : changes) {
    live += bytes;
    SKIFF_ENFORCE(live <= kMaxLiveBytes, kResourceExhausted, live,
                  " bytes of arena buffers are live at instant ", instant, ": expected at most ",
                  kMaxLiveBytes);
    most = std::max(most, live);
  }
  return most;
}

// Improves a placement by searches at the bound, and between the bound and the placement.
class Improvement {
 public:
  Improvement(std::span<const ArenaBuffer> buffers, int64_t unit, const ArenaPlanOptions& options,
              std::function<bool()> stop)
      : buffers_(buffers), unit_(unit), options_(options), stop_(std::move(stop)) {
    for (const ArenaBuffer& buffer : buffers) {
      search_buffers_.push_back({.size = RoundUp(buffer.bytes, unit) / unit,
                                 .alignment = buffer.alignment / unit,
                                 .first = buffer.first_use,
                                 .last = buffer.last_use});
    }
  }

  // Searches until the placement takes at most `enough_bytes`, a multiple of the unit, or is proven
  // to be the smallest.
  void Run(int64_t enough_bytes, OrderedPlacement* placement) {
    if (options_.max_search_nodes < std::ssize(buffers_)) return;
    least_ = enough_bytes / unit_;
    int64_t max_nodes = kFirstNodes + 4 * static_cast<int64_t>(buffers_.size());
    for (; !IsOver() && Units(*placement) > least_; max_nodes *= 2, ++seed_) {
      // A plan at the bound ends everything, so it gets as many nodes as all capacities above it.
      // Bisection between the bound and the best plan then lowers that step by step. Each round
      // doubles the nodes, so that a hard capacity can't starve the others.
      int64_t failed = least_;
      if (TryCapacity(failed, kMiddles * max_nodes, placement)) return;
      for (int i = 0; i < kMiddles && !IsOver() && Units(*placement) - failed > 1; ++i) {
        const int64_t middle = failed + (Units(*placement) - failed) / 2;
        if (!TryCapacity(middle, max_nodes, placement)) failed = middle;
      }
    }
  }

 private:
  static constexpr int64_t kFirstNodes = 1000;
  // How many capacities above the bound each round tries; they get half of its nodes.
  static constexpr int kMiddles = 4;

  bool IsOver() const {
    return nodes_ >= options_.max_search_nodes || steps_ >= options_.max_search_steps ||
           (stop_ && stop_());
  }

  int64_t Units(const OrderedPlacement& placement) const {
    return RoundUp(placement.planned_bytes, unit_) / unit_;
  }

  // Returns whether the search found a placement; replaces *placement by it.
  bool TryCapacity(int64_t capacity, int64_t max_nodes, OrderedPlacement* placement) {
    const SearchLimits limits{.max_nodes = std::min(max_nodes, options_.max_search_nodes - nodes_),
                              .max_steps = options_.max_search_steps - steps_,
                              .seed = seed_,
                              .stop = stop_};
    SearchResult result = SearchArena(search_buffers_, capacity, limits);
    nodes_ += result.nodes + 1;  // a proof may take no node
    steps_ += result.steps;
    if (result.outcome == SearchOutcome::kImpossible) least_ = std::max(least_, capacity + 1);
    if (result.outcome != SearchOutcome::kFound) return false;
    int64_t planned_bytes = 0;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      result.offsets[i] *= unit_;
      planned_bytes = std::max(planned_bytes, result.offsets[i] + buffers_[i].bytes);
    }
    *placement = {std::move(result.offsets), planned_bytes};
    return true;
  }

  std::span<const ArenaBuffer> buffers_;
  const int64_t unit_;
  const ArenaPlanOptions& options_;
  const std::function<bool()> stop_;
  std::vector<SearchBuffer> search_buffers_;
  int64_t least_ = 0;  // in units: what suffices, or what the search can't go below
  int64_t nodes_ = 0;
  int64_t steps_ = 0;
  uint64_t seed_ = 0;
};

std::function<bool()> StopAfter(double seconds) {
  if (seconds <= 0) return {};
  using Clock = std::chrono::steady_clock;
  return [begin = Clock::now(), seconds] {
    return std::chrono::duration<double>(Clock::now() - begin).count() >= seconds;
  };
}

// The buffers that take space, and the groups that hold them together.
struct Task {
  std::vector<ArenaBuffer> buffers;
  std::vector<size_t> indices;  // of the buffers, in the input
  std::vector<ArenaGroup> groups;
};

Task TaskOf(const std::vector<ArenaBuffer>& buffers, const std::vector<ArenaGroup>& groups) {
  Task task;
  std::vector<size_t> places(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    places[i] = task.buffers.size();
    if (buffers[i].bytes == 0) continue;
    task.buffers.push_back(buffers[i]);
    task.indices.push_back(i);
  }
  for (ArenaGroup group : groups) {
    std::erase_if(group.slices, [&](size_t i) { return buffers[i].bytes == 0; });
    for (size_t& slice : group.slices) slice = places[slice];
    if (group.slices.empty()) continue;
    ArenaBuffer& first = task.buffers[group.slices[0]];
    if (group.slices.size() > 1 || first.group_offset > 0) {
      task.groups.push_back(std::move(group));
    } else {
      // The group's only slice with bytes, at its base. It can be placed like any other buffer,
      // which lets the search place it.
      first.group = -1;
      first.alignment = group.alignment;
    }
  }
  return task;
}

// Gives slices without bytes, which take part in no placement, their offsets within their groups.
// The arena is extended if need be, so that their addresses are inside it.
void PlaceEmptySlices(const std::vector<ArenaBuffer>& buffers,
                      const std::vector<ArenaGroup>& groups, ArenaPlan* plan) {
  for (const ArenaGroup& group : groups) {
    const auto has_bytes = [&](size_t i) { return buffers[i].bytes > 0; };
    const auto placed = std::ranges::find_if(group.slices, has_bytes);
    const int64_t base =
        placed == group.slices.end() ? 0 : plan->offsets[*placed] - buffers[*placed].group_offset;
    for (const size_t i : group.slices) {
      plan->offsets[i] = base + buffers[i].group_offset;
      plan->planned_bytes = std::max(plan->planned_bytes, plan->offsets[i] + buffers[i].bytes);
    }
  }
}

OrderedPlacement Place(const Task& task, const ArenaPlanOptions& options) {
  // The clock starts here, so that the quick orders count towards the limit.
  const std::function<bool()> stop = StopAfter(options.time_limit_seconds);
  // All offsets are multiples of the smallest alignment. The search counts in this unit, which
  // makes all alignments 1 if they are equal.
  int64_t unit = kMaxAlignment;
  for (const ArenaBuffer& buffer : task.buffers) unit = std::min(unit, buffer.alignment);
  // Counts whole units, as the search does. A placement may take a little less, since its topmost
  // buffer needn't fill its last unit.
  int64_t enough_bytes = MaxLiveBytes(task.buffers, unit);
  enough_bytes = std::max(enough_bytes, options.capacity / unit * unit);
  if (!task.groups.empty()) return PlaceWithGroups(task.buffers, task.groups, enough_bytes);
  OrderedPlacement placement = PlaceInOrders(task.buffers, enough_bytes);
  if (placement.planned_bytes > enough_bytes && placement.planned_bytes < INT64_MAX) {
    Improvement(task.buffers, unit, options, stop).Run(enough_bytes, &placement);
  }
  return placement;
}

}  // namespace

ArenaPlan PlanArena(const std::vector<ArenaBuffer>& buffers, const ArenaPlanOptions& options) {
  for (const ArenaBuffer& buffer : buffers) Check(buffer);
  const std::vector<ArenaGroup> groups = GroupsOf(buffers);
  const Task task = TaskOf(buffers, groups);
  ArenaPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  if (!task.buffers.empty()) {
    plan.max_live_bytes = MaxLiveBytes(task.buffers, 1);
    const OrderedPlacement placement = Place(task, options);
    SKIFF_ENFORCE(placement.planned_bytes < std::numeric_limits<int64_t>::max(), kResourceExhausted,
                  "an arena of ", task.buffers.size(), " buffers, of which ", plan.max_live_bytes,
                  " bytes are live at once, has no offsets within 64 bits");
    plan.planned_bytes = placement.planned_bytes;
    for (size_t i = 0; i < task.indices.size(); ++i) {
      plan.offsets[task.indices[i]] = placement.offsets[i];
    }
  }
  PlaceEmptySlices(buffers, groups, &plan);
  return plan;
}

}  // namespace skiff
