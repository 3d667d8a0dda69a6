#include "memory/arena_planner.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

bool Meet(const ArenaBuffer& a, const ArenaBuffer& b) {
  return a.first_use <= b.last_use && b.first_use <= a.last_use;
}

int64_t MaxLiveBytes(const std::vector<ArenaBuffer>& buffers) {
  std::map<int64_t, int64_t> change;
  for (const ArenaBuffer& buffer : buffers) {
    const int64_t bytes = buffer.bytes;
    change[buffer.first_use] += bytes;
    change[int64_t{buffer.last_use} + 1] -= bytes;
  }
  int64_t live = 0;
  int64_t peak = 0;
  for (const auto& [instant, bytes] : change) {
    live += bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

// Places the buffers in the given order, each at the lowest free gap among those it meets.
ArenaPlan PlaceInOrder(const std::vector<ArenaBuffer>& buffers, const std::vector<size_t>& order) {
  ArenaPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<size_t> placed;  // by offset
  for (size_t index : order) {
    const ArenaBuffer& buffer = buffers[index];
    if (buffer.bytes == 0) continue;
    int64_t offset = 0;
    for (size_t other : placed) {
      if (!Meet(buffer, buffers[other])) continue;
      if (offset + buffer.bytes <= plan.offsets[other]) break;
      offset =
          std::max(offset, RoundUp(plan.offsets[other] + buffers[other].bytes, buffer.alignment));
    }
    plan.offsets[index] = offset;
    plan.planned_bytes = std::max(plan.planned_bytes, offset + buffer.bytes);
    const auto by_offset = [&plan](size_t a, size_t b) {
      return plan.offsets[a] < plan.offsets[b];
    };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index, by_offset), index);
  }
  return plan;
}

}  // namespace

ArenaPlan PlanArena(const std::vector<ArenaBuffer>& buffers) {
  for (const ArenaBuffer& buffer : buffers) {
    SKIFF_ENFORCE(buffer.bytes >= 0, kInvalidArgument, "arena buffer of ", buffer.bytes, " bytes");
    SKIFF_ENFORCE(buffer.first_use <= buffer.last_use, kInvalidArgument,
                  "arena buffer with first use ", buffer.first_use, " after last use ",
                  buffer.last_use);
    SKIFF_ENFORCE(buffer.alignment > 0 && (buffer.alignment & (buffer.alignment - 1)) == 0,
                  kInvalidArgument, "arena buffer with alignment ", buffer.alignment,
                  ": expected a power of two");
  }
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  ArenaPlan best = PlaceInOrder(buffers, order);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].first_use < buffers[b].first_use; });
  ArenaPlan by_first_use = PlaceInOrder(buffers, order);
  if (by_first_use.planned_bytes < best.planned_bytes) best = std::move(by_first_use);
  best.max_live_bytes = MaxLiveBytes(buffers);
  return best;
}

}  // namespace skiff
