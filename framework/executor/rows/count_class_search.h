// Finds which counts of a plan's feeds may change alone.
#pragma once

#include "framework/executor/rows/plan_lods.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns the counts of a plan's feeds, all of which may vary, with as few of them in one class as
// the plan's ops allow: two counts share one if an op refuses the feeds when only one of them
// changes. A dense feed that can't change at all has no class.
CountClasses FindClasses(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods);

}  // namespace skiff
