// Plans where the arena holds the values and workspaces of a plan.
#pragma once

#include "framework/plan/plan.h"

namespace skiff {

// Sets the offset of every arena value and workspace, in the arena of its place, and the plan's
// byte counts. A value lives from the instruction that writes it to the last that reads it, or to
// the end if it is fetched. Values whose lives don't meet share space as the plan's `reuse` says.
// Plan::contiguous holds whatever the policy: with kArena each value of a list still gives its
// space to others before and after its life, with any other policy the values of a list do so
// together. Throws what ContiguousSlices and PlanWithPolicy throw.
void PlanStorage(Plan* plan);

}  // namespace skiff
