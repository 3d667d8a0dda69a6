// Makes plans of a compiled program for feeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "framework/executor/api/feed_list.h"
#include "framework/executor/plan_maker.h"
#include "framework/executor/plan_sources.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/executor/run/prepared_plan.h"

namespace skiff {

class PlanFactory {
 public:
  // `sources` must outlive the factory and its plans.
  explicit PlanFactory(const PlanSources& sources) : sources_(sources) {}

  // Returns a new plan, bound to the feeds, for the segment after `before`, or for the first
  // segment if `before` is nullptr. If rows may vary, the plan is for the capacity of the feeds,
  // unless no such plan exists (PlanRows) or the options ask for exact rows. Counts the plan.
  // Throws the Errors of PreparePlan, with the exact counts of the feeds.
  std::shared_ptr<PreparedPlan> Make(const FeedList& feeds, const FetchList& fetches,
                                     const PreparedPlan* before);

 private:
  // A segment, by its first op, fetches, and a capacity for which there is no plan, with the
  // classes of counts.
  using ExactPlan =
      std::tuple<size_t, FetchList, std::vector<int64_t>, std::vector<std::vector<size_t>>>;

  // Returns a plan for the runs whose counts round up to the same capacity; nullptr if there is
  // none, since shapes depend on counts in another way or something is wrong with the feeds.
  // `exact` is the request for the exact counts.
  std::shared_ptr<PreparedPlan> MakeForCapacity(const FeedList& feeds, const PlanRequest& exact,
                                                const CountClasses& counts);
  // Returns a line for an Error about missing memory that says how the capacity matters. Throws
  // nothing: a failure here must not hide the Error that it explains.
  std::string CapacityText(const PlanRequest& exact, const CountClasses& counts) const noexcept;

  const PlanSources& sources_;
  std::set<ExactPlan> exact_plans_;
};

}  // namespace skiff
