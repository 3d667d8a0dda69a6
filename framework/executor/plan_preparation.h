// Prepares plans of a compiled program: kernels, storage, memory, within the memory options.
#pragma once

#include <memory>

#include "framework/executor/plan_maker.h"
#include "framework/executor/plan_sources.h"
#include "framework/executor/run/prepared_plan.h"

namespace skiff {

// Returns a plan for the request that has its memory and needs feeds. With Recompute::kBudget the
// plan is the first one within the budget: the search begins with a plan that recomputes nothing.
// Throws the Errors of MakeSegment and PreparedPlan, and an Error (kResourceExhausted) if no plan
// is within the budget. If there is no memory for the plan, the Error lists the options that would
// take less.
std::shared_ptr<PreparedPlan> PreparePlan(const PlanSources& sources, const PlanRequest& request);

}  // namespace skiff
