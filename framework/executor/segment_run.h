// Runs a program of one segment or several.
#pragma once

#include <functional>
#include <memory>

#include "framework/executor/api/feed_list.h"
#include "framework/executor/plan_cache.h"
#include "framework/executor/run/prepared_plan.h"

namespace skiff {

// Runs the program from the segment of `first` on, which is bound to its feeds; run_one(plan) runs
// each. The plans of later segments come from `plans`, for the fetches of the segment before as
// feeds. Returns the plan of the last segment, which has the fetches. Only `first` keeps its feeds,
// for another run by the plan's owner.
//
// Throws the Errors of run_one and PlanCache::Get. The scope is then as it was before the first
// segment.
std::shared_ptr<PreparedPlan> RunSegments(const std::shared_ptr<PreparedPlan>& first,
                                          const FetchList& fetches, PlanCache* plans,
                                          const std::function<void(PreparedPlan&)>& run_one);

}  // namespace skiff
