#include "framework/executor/plan_cache.h"

#include <algorithm>

namespace skiff {
namespace {

// Returns whether the plan begins where the segment before has ended, with what that has left.
bool Follows(const PreparedPlan& plan, const PreparedPlan& before) {
  return plan.first_op() == before.next_op() &&
         CanReplace(plan.arrays_before(), before.arrays_after()) &&
         CanReplace(plan.gradients_before(), before.gradients_after()) &&
         CanReplace(plan.contents_before(), before.contents_after());
}

}  // namespace

std::shared_ptr<PreparedPlan> PlanCache::Get(const FeedList& feeds, const FetchList& fetches,
                                             const PreparedPlan* before) {
  ArrangeScope();
  // A stale plan can never become current again, but it holds memory. So it goes before another one
  // is made.
  std::erase_if(plans_, [](const CachedPlan& plan) { return !plan.prepared->is_current(); });
  const auto found = std::ranges::find_if(plans_, [&](const CachedPlan& plan) {
    const bool is_segment =
        before == nullptr ? plan.prepared->first_op() == 0 : Follows(*plan.prepared, *before);
    return is_segment && plan.fetches == fetches && plan.prepared->BindFeeds(feeds);
  });
  if (found != plans_.end()) {
    // The list is in the order of use, so that the plan at the back is the one to evict.
    plans_.splice(plans_.begin(), plans_, found);
    return plans_.front().prepared;
  }
  plans_.push_front({fetches, factory_.Make(feeds, fetches, before)});
  while (plans_.size() > sources_.options.plan_cache_capacity) plans_.pop_back();
  return plans_.front().prepared;
}

std::shared_ptr<PreparedPlan> PlanCache::MakeOwn(const FeedList& feeds, const FetchList& fetches) {
  ArrangeScope();
  return factory_.Make(feeds, fetches, nullptr);
}

}  // namespace skiff
