// Finds which counts of a plan's feeds may change alone.
#pragma once

#include "framework/executor/rows/plan_lods.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns the counts of a plan's feeds, all of which may vary, in classes as small as the plan's
// ops allow: two counts share a class if an op refuses the feeds when only one count changes. A
// dense feed that can't change at all has no class.
CountClasses FindClasses(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods);

}  // namespace skiff
