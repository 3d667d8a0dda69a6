// The counter that the learning-rate schedules of a program go by.
#pragma once

#include <cstddef>

#include "framework/ir/program.h"

namespace skiff {

inline constexpr const char* kStepCounter = "@LR_DECAY_COUNTER@";

// Returns the position of the op that advances the step counter, its output "Out", by runs or by
// rounds, in the root block of a program; the number of ops if there is none.
size_t FindStepAdvance(const Block& root);

}  // namespace skiff
