#include "memory/reuse_policy.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "memory/arena_groups.h"

namespace skiff {
namespace {

constexpr std::array<std::pair<ReusePolicy, std::string_view>, 5> kNames = {
    {{ReusePolicy::kNone, "none"},
     {ReusePolicy::kEqual, "equal"},
     {ReusePolicy::kBestFit, "best_fit"},
     {ReusePolicy::kGrow, "grow"},
     {ReusePolicy::kArena, "arena"}}};

constexpr int64_t kLimitBytes = int64_t{1} << 60;
// A plan is used for many steps, so it may take up to a second. The step of ResNet-20 with batch 8
// and AVX2 meets its bound with 100,000 states and 300 million steps.
constexpr int64_t kMaxSearchNodes = 200'000;
constexpr int64_t kMaxSearchSteps = 400'000'000;
constexpr int64_t kBeyondLimit = std::numeric_limits<int64_t>::max();

// A piece of memory that buffers use one after the other.
struct Pool {
  int64_t bytes = 0;
  int64_t alignment = 1;
};

// Walks through the buffers by first use, as Fluid's transpiler does through the ops of a program:
// each buffer takes the memory of a dead one if the policy finds a fitting one, else new memory.
// The pools come one after the other in the arena. A pool that grows moves those after it, so
// offsets are known only at the end.
class PoolPlanner {
 public:
  PoolPlanner(const std::vector<ArenaBuffer>& buffers, ReusePolicy policy)
      : buffers_(buffers), policy_(policy), pool_of_(buffers.size()) {}

  ArenaPlan Run() {
    std::vector<size_t> order(buffers_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return buffers_[i].first_use; });
    std::multimap<int32_t, size_t> in_use;  // by the last instant
    for (const size_t i : order) {
      if (buffers_[i].bytes == 0) continue;
      // Strictly before: an op may read a buffer at the instant at which it writes another.
      const auto dead = in_use.lower_bound(buffers_[i].first_use);
      for (auto it = in_use.begin(); it != dead; ++it) Release(it->second);
      in_use.erase(in_use.begin(), dead);
      pool_of_[i] = Take(buffers_[i]);
      in_use.emplace(buffers_[i].last_use, pool_of_[i]);
    }
    return Offsets();
  }

 private:
  // Free pools by size, those of equal size by age.
  using FreePools = std::map<std::pair<int64_t, size_t>, size_t>;

  void Release(size_t pool) { free_[{pools_[pool].bytes, pool}] = pool; }

  FreePools::iterator FindFree(const ArenaBuffer& buffer) {
    if (policy_ == ReusePolicy::kNone) return free_.end();
    const auto found = free_.lower_bound({buffer.bytes, 0});
    const bool is_equal = found != free_.end() && found->first.first == buffer.bytes;
    if (policy_ == ReusePolicy::kEqual) return is_equal ? found : free_.end();
    if (found == free_.end() && policy_ == ReusePolicy::kGrow && !free_.empty()) {
      return std::prev(free_.end());
    }
    return found;
  }

  size_t Take(const ArenaBuffer& buffer) {
    const auto found = FindFree(buffer);
    size_t pool = pools_.size();
    if (found == free_.end()) {
      pools_.emplace_back();
    } else {
      pool = found->second;
      free_.erase(found);
    }
    pools_[pool].bytes = std::max(pools_[pool].bytes, buffer.bytes);
    pools_[pool].alignment = std::max(pools_[pool].alignment, buffer.alignment);
    return pool;
  }

  // Of kBeyondLimit bytes, and without offsets, if the pools add up to more than the limit.
  ArenaPlan Offsets() const {
    ArenaPlan plan;
    std::vector<int64_t> begins;
    for (const Pool& pool : pools_) {
      begins.push_back(RoundUp(plan.planned_bytes, pool.alignment));
      if (pool.bytes > kLimitBytes - begins.back()) {
        return {.offsets = {}, .planned_bytes = kBeyondLimit, .max_live_bytes = 0};
      }
      plan.planned_bytes = begins.back() + pool.bytes;
    }
    for (size_t i = 0; i < buffers_.size(); ++i) {
      plan.offsets.push_back(buffers_[i].bytes == 0 ? 0 : begins[pool_of_[i]]);
    }
    return plan;
  }

  const std::vector<ArenaBuffer>& buffers_;
  const ReusePolicy policy_;
  std::vector<Pool> pools_;
  FreePools free_;
  std::vector<size_t> pool_of_;
};

// Returns a group as one buffer that lives as long as any slice, since these policies hand on
// memory as a whole.
ArenaBuffer WholeOf(const ArenaGroup& group, const std::vector<ArenaBuffer>& buffers) {
  ArenaBuffer whole = buffers[group.slices[0]];
  whole.bytes = group.bytes;
  whole.alignment = group.alignment;
  for (const size_t i : group.slices) {
    whole.first_use = std::min(whole.first_use, buffers[i].first_use);
    whole.last_use = std::max(whole.last_use, buffers[i].last_use);
  }
  return whole;
}

ArenaPlan PlanWholeBuffers(const std::vector<ArenaBuffer>& buffers, ReusePolicy policy) {
  std::vector<ArenaBuffer> wholes;
  std::vector<size_t> whole_of(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    whole_of[i] = wholes.size();
    if (buffers[i].group < 0) wholes.push_back(buffers[i]);
  }
  for (const ArenaGroup& group : GroupsOf(buffers)) {
    for (const size_t i : group.slices) whole_of[i] = wholes.size();
    wholes.push_back(WholeOf(group, buffers));
  }
  ArenaPlan plan = PoolPlanner(wholes, policy).Run();
  if (plan.planned_bytes == kBeyondLimit) return plan;
  const std::vector<int64_t> begins = std::exchange(plan.offsets, {});
  for (size_t i = 0; i < buffers.size(); ++i) {
    plan.offsets.push_back(begins[whole_of[i]] +
                           (buffers[i].group < 0 ? 0 : buffers[i].group_offset));
  }
  return plan;
}

}  // namespace

std::string_view ReusePolicyName(ReusePolicy policy) {
  return std::ranges::find(kNames, policy, &std::pair<ReusePolicy, std::string_view>::first)
      ->second;
}

ReusePolicy ParseReusePolicy(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [policy, known] : kNames) {
    if (known == name) return policy;
    names.push_back(known);
  }
  Throw(ErrorCode::kInvalidArgument, "reuse policy \"", name, "\": expected one of ",
        Join(names, ", "));
}

ArenaPlan PlanWithPolicy(const std::vector<ArenaBuffer>& buffers, ReusePolicy policy) {
  const bool is_arena = policy == ReusePolicy::kArena;
  // Checks the buffers and finds the bound for the other policies, too.
  ArenaPlan plan = PlanArena(buffers, {.max_search_nodes = is_arena ? kMaxSearchNodes : 0,
                                       .max_search_steps = kMaxSearchSteps});
  const int64_t max_live_bytes = plan.max_live_bytes;
  if (!is_arena) plan = PlanWholeBuffers(buffers, policy);
  // The policies are greedy, so one that allows less sharing may have a smaller plan.
  for (const ReusePolicy lesser : kReusePolicies) {
    if (lesser >= policy || plan.planned_bytes <= max_live_bytes) break;
    ArenaPlan other = PlanWholeBuffers(buffers, lesser);
    if (other.planned_bytes < plan.planned_bytes) plan = std::move(other);
  }
  SKIFF_ENFORCE(plan.planned_bytes < kBeyondLimit, kResourceExhausted, "buffers of more than ",
                kLimitBytes, " bytes in all");
  plan.max_live_bytes = max_live_bytes;
  return plan;
}

}  // namespace skiff
