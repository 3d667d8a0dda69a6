// Tells which values of a plan may share storage.
#pragma once

#include <utility>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Pairs of an input and an output of an instruction, by index.
using InputOutputPairs = std::vector<std::pair<int, int>>;

// Returns the pairs that may share storage if no later instruction reads the input.
InputOutputPairs InPlacePairs(const Plan& plan, const Instruction& instruction);

// Returns the pairs whose output is the input, or the first of its elements, in another shape. They
// may share storage whoever else reads the input, as long as nothing writes there.
InputOutputPairs ViewPairs(const Plan& plan, const Instruction& instruction);

// Returns whether two values may share storage at all: both are in one arena, have equal bytes,
// dtype and layout, and neither is_exclusive.
bool MayShareStorage(const PlanValue& a, const PlanValue& b);

}  // namespace skiff
