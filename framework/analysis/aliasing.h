// Which values of a plan may share storage.
#pragma once

#include <utility>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Pairs of an input and an output, as indices into those of an instruction.
using InputOutputPairs = std::vector<std::pair<int, int>>;

// Those that may share storage if nobody else reads the input any more.
InputOutputPairs InPlacePairs(const Plan& plan, const Instruction& instruction);

// Those whose output is the input in another shape, so that they may share storage whoever reads
// the input, as long as nobody writes there.
InputOutputPairs ViewPairs(const Plan& plan, const Instruction& instruction);

// Whether two values may lie in one storage at all: both in the arena, of one form, and neither in
// Plan::memory.skip.
bool MayShareStorage(const Plan& plan, const PlanValue& a, const PlanValue& b);

}  // namespace skiff
