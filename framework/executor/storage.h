// Where the values and workspaces of a plan lie in its arena.
#pragma once

#include "framework/plan/plan.h"

namespace skiff {

// Sets the offset of every arena value and workspace, and the plan's byte counts. Values share
// space as the plan's `reuse` says where their lives, from the instruction that writes them to the
// last that reads them (or to the end, if fetched), do not meet. Contiguous values lie as
// Plan::contiguous says, whatever the policy; each value there still gives its space to others
// before and after its life where the policy is kArena, and the values of a list together where it
// is another. Errors of ContiguousSlices and PlanWithPolicy.
void PlanStorage(Plan* plan);

}  // namespace skiff
