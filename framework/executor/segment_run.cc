#include "framework/executor/segment_run.h"

#include <ranges>
#include <vector>

namespace skiff {

std::shared_ptr<PreparedPlan> RunSegments(const std::shared_ptr<PreparedPlan>& first,
                                          const FetchList& fetches, PlanCache* plans,
                                          const std::function<void(PreparedPlan&)>& run_one) {
  run_one(*first);
  if (first->is_last_segment()) return first;
  std::shared_ptr<PreparedPlan> plan = first;
  std::vector<std::shared_ptr<PreparedPlan>> done;
  const auto release_feeds = [&] {
    for (const auto& earlier : done | std::views::drop(1)) earlier->ReleaseFeeds();
    if (plan != first) plan->ReleaseFeeds();
  };
  try {
    while (!plan->is_last_segment()) {
      const FeedList carried = plan->TakeCarried();
      done.push_back(plan);
      plan = plans->Get(carried, fetches, plan.get());
      run_one(*plan);
    }
  } catch (...) {
    for (const auto& earlier : done | std::views::reverse) earlier->UndoRun();
    release_feeds();
    throw;
  }
  release_feeds();
  return plan;
}

}  // namespace skiff
