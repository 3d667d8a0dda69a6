// Which runs of a training program update its parameters: all, or one in k, the gradients of the
// others being added up until then, and only those whose gradients are finite.
//
// Everything is in the program: sums and counters are persistables, which checkpoints hold, and the
// update ops read a bool that says whether to leave all as it is (SkipUpdate).
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/gradient_ops.h"
#include "framework/builder/variable.h"

namespace skiff {

// Persistable int64 [1]: how many updates were skipped because a gradient wasn't finite.
inline constexpr const char* kSkippedUpdates = "@SKIPPED_UPDATES@";

struct GradientMerge {
  int64_t steps = 1;  // runs from one update to the next
  bool mean = true;   // the mean of their gradients; false: the sum
};

// What tells the runs of a round apart.
struct MergeRound {
  Variable is_first;  // bools [1]
  Variable is_last;
  // The ops of the root block that make them: [begin, end).
  size_t begin = 0;
  size_t end = 0;
};

// Adds up each gradient in <parameter>@GRAD@GradientMerge (dense, even where the gradient is
// sparse), begins again behind each update, and puts the sum or the mean in place of the gradient.
// Error unless steps > 0.
MergeRound AppendGradientMerge(const GradientMerge& merge, std::vector<NamedGradient>* gradients,
                               const std::source_location& site);

// Has the learning-rate schedules of the program advance once a round, as with one large batch.
// Moves ops: the last thing that is done to the program.
void AdvanceSchedulesByRound(const MergeRound& round, const std::source_location& site);

// Returns a bool [1]: true if an element of a gradient isn't finite, or so large that the sum of
// the squares isn't. Counts in kSkippedUpdates how often that was so while `skip`, which may be
// undefined, was false.
Variable AppendNonFiniteCheck(const std::vector<NamedGradient>& gradients, const Variable& skip,
                              const std::source_location& site);

}  // namespace skiff
