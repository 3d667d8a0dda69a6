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

  // Returns a new plan for a segment, bound to the feeds: the segment after `before`, the first one
  // if that is nullptr. If rows may vary, the plan is one for the capacity of the feeds, unless
  // there is none (PlanRows) or the options ask for exact rows. Counts the plan. Throws what
  // PreparePlan throws, for the numbers of the very feeds.
  std::shared_ptr<PreparedPlan> Make(const FeedList& feeds, const FetchList& fetches,
                                     const PreparedPlan* before);

 private:
  // A segment, by its first op, fetches, and a capacity for which there is no plan, with the
  // classes of counts.
  using ExactPlan =
      std::tuple<size_t, FetchList, std::vector<int64_t>, std::vector<std::vector<size_t>>>;

  // Returns a plan for the runs whose counts round up to the same capacity, nullptr if there is
  // none: shapes depend on counts in another way, or something is wrong with the feeds. `exact` is
  // the request for the very counts.
  std::shared_ptr<PreparedPlan> MakeForCapacity(const FeedList& feeds, const PlanRequest& exact,
                                                const CountClasses& counts);
  // Returns a line for an Error about what the capacity has to do with it. Throws nothing: a
  // failure here must not hide the Error that it explains.
  std::string CapacityText(const PlanRequest& exact, const CountClasses& counts) const noexcept;

  const PlanSources& sources_;
  std::set<ExactPlan> exact_plans_;
};

}  // namespace skiff
