// Which runs of a training program update its parameters.
#pragma once

#include <cstdint>

namespace skiff {

// Persistable int64 [1]: how many updates were skipped because a gradient wasn't finite. The
// counter of a second program of a startup program is called <name>_<n>.
inline constexpr const char* kSkippedUpdates = "@SKIPPED_UPDATES@";

// The names of a program with GradientMerge. Persistable int64 [1]: the gradients of the round so
// far, 0 between two rounds. A program may have several, kMergedCount_<n>.
inline constexpr const char* kMergedCount = "@GRADIENT_MERGE_STEP@";
// Behind the name of a parameter, in the name of the persistable that holds the sum of its
// gradients.
inline constexpr const char* kMergedGradient = "@GRAD@GradientMerge";

struct GradientMerge {
  int64_t steps = 1;  // runs from one update to the next
  bool mean = true;   // the mean of their gradients; false: the sum
};

}  // namespace skiff
