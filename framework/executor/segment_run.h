// Runs a program of one segment or several.
#pragma once

#include <functional>
#include <memory>

#include "framework/executor/api/feed_list.h"
#include "framework/executor/plan_cache.h"
#include "framework/executor/run/prepared_plan.h"

namespace skiff {

// Runs the program from the segment of `first` on, which is bound to its feeds; run_one(plan) runs
// each. The plans of later segments come from `plans`, since their feeds are what the segment
// before has fetched. Returns the plan of the last segment, which has the fetches. Only `first`
// keeps its feeds: its owner may run it again.
//
// Throws what run_one and PlanCache::Get throw. The scope is then as it was before the first
// segment.
std::shared_ptr<PreparedPlan> RunSegments(const std::shared_ptr<PreparedPlan>& first,
                                          const FetchList& fetches, PlanCache* plans,
                                          const std::function<void(PreparedPlan&)>& run_one);

}  // namespace skiff
