// Tells which values of a plan may share storage.
#pragma once

#include "framework/analysis/op_aliasing.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns the pairs of any instruction that may share storage if no later instruction reads the
// input.
InputOutputPairs InPlacePairs(const Plan& plan, const Instruction& instruction);

// Returns whether two values may share storage at all: both are in one arena, have equal bytes,
// dtype and layout, and neither is_exclusive.
bool MayShareStorage(const PlanValue& a, const PlanValue& b);

}  // namespace skiff
