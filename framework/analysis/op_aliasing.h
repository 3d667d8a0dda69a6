// Tells which inputs and outputs of an op may share storage, by its definition.
#pragma once

#include <utility>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Pairs of an input and an output of an instruction, by index.
using InputOutputPairs = std::vector<std::pair<int, int>>;

// Returns the pairs that may share storage if no later instruction reads the input. None for an
// instruction that isn't one op.
InputOutputPairs InPlacePairsOfOp(const Plan& plan, const Instruction& instruction);

// Returns the pairs whose output is the input, or the first of its elements, in another shape. They
// may share storage whoever else reads the input, as long as nothing writes there. None for an
// instruction that isn't one op.
InputOutputPairs ViewPairs(const Plan& plan, const Instruction& instruction);

}  // namespace skiff
