#include "memory/arena_planner.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "memory/arena_orders.h"
#include "memory/arena_search.h"

namespace skiff {
namespace {

// Below these no sum overflows.
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

// The most bytes live at one instant, if each buffer takes a multiple of `unit`.
int64_t MaxLiveBytes(std::span<const ArenaBuffer> buffers, int64_t unit) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // instant, bytes
  for (const ArenaBuffer& buffer : buffers) {
    const int64_t bytes = RoundUp(buffer.bytes, unit);
    changes.emplace_back(buffer.first_use, bytes);
    changes.emplace_back(int64_t{buffer.last_use} + 1, -bytes);
  }
  std::ranges::sort(changes);  // at one instant what dies comes first
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

// Lowers a placement by searches at the bound and between it and what is there.
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

  // Until the placement takes at most `enough_bytes`, a multiple of the unit, or the search has
  // proven that it can do no better.
  void Run(int64_t enough_bytes, OrderedPlacement* placement) {
    least_ = enough_bytes / unit_;
    int64_t max_nodes = kFirstNodes + 4 * static_cast<int64_t>(buffers_.size());
    for (; !IsOver() && Units(*placement) > least_; max_nodes *= 2, ++seed_) {
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
  // Capacities above the least one that are tried in a round, which take half of the nodes.
  static constexpr int kMiddles = 4;

  bool IsOver() const { return nodes_ >= options_.max_search_nodes || (stop_ && stop_()); }

  int64_t Units(const OrderedPlacement& placement) const {
    return RoundUp(placement.planned_bytes, unit_) / unit_;
  }

  // Whether the placement takes no more now.
  bool TryCapacity(int64_t capacity, int64_t max_nodes, OrderedPlacement* placement) {
    const SearchLimits limits{.max_nodes = std::min(max_nodes, options_.max_search_nodes - nodes_),
                              .seed = seed_,
                              .stop = stop_};
    SearchResult result = SearchArena(search_buffers_, capacity, limits);
    nodes_ += result.nodes + 1;  // a proof may take none
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
  int64_t least_ = 0;  // in units: enough, or what the search can't go below
  int64_t nodes_ = 0;
  uint64_t seed_ = 0;
};

std::function<bool()> StopAfter(double seconds) {
  if (seconds <= 0) return {};
  using Clock = std::chrono::steady_clock;
  return [begin = Clock::now(), seconds] {
    return std::chrono::duration<double>(Clock::now() - begin).count() >= seconds;
  };
}

}  // namespace

ArenaPlan PlanArena(const std::vector<ArenaBuffer>& buffers, const ArenaPlanOptions& options) {
  const std::function<bool()> stop = StopAfter(options.time_limit_seconds);
  ArenaPlan plan;
  std::vector<ArenaBuffer> with_bytes;
  std::vector<size_t> indices;
  int64_t unit = kMaxAlignment;
  for (size_t i = 0; i < buffers.size(); ++i) {
    Check(buffers[i]);
    if (buffers[i].bytes == 0) continue;
    with_bytes.push_back(buffers[i]);
    indices.push_back(i);
    unit = std::min(unit, buffers[i].alignment);
  }
  plan.offsets.assign(buffers.size(), 0);
  if (with_bytes.empty()) return plan;
  plan.max_live_bytes = MaxLiveBytes(with_bytes, 1);
  // The buffer on top needn't end at a multiple of the unit; else this couldn't be undercut.
  int64_t enough_bytes = MaxLiveBytes(with_bytes, unit);
  enough_bytes = std::max(enough_bytes, options.capacity / unit * unit);
  OrderedPlacement placement = PlaceInOrders(with_bytes, enough_bytes);
  SKIFF_ENFORCE(placement.planned_bytes < std::numeric_limits<int64_t>::max(), kResourceExhausted,
                "an arena of ", with_bytes.size(), " buffers, of which ", plan.max_live_bytes,
                " bytes are live at once, has no offsets within 64 bits");
  if (placement.planned_bytes > enough_bytes) {
    Improvement(with_bytes, unit, options, stop).Run(enough_bytes, &placement);
  }
  for (size_t i = 0; i < indices.size(); ++i) plan.offsets[indices[i]] = placement.offsets[i];
  plan.planned_bytes = placement.planned_bytes;
  return plan;
}

}  // namespace skiff
