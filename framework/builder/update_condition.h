// Decides which runs of a training program update its parameters: all runs, or one in k, with the
// gradients of the runs between added up; and, if asked for, only runs whose gradients are finite.
//
// Everything is in the program: sums and counters are persistables, which checkpoints hold, and the
// update ops read a bool that says whether to leave everything as it is (SkipUpdate).
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <vector>

#include "framework/builder/gradient_merge.h"
#include "framework/builder/gradient_ops.h"
#include "framework/builder/learning_rate.h"
#include "framework/builder/variable.h"

namespace skiff {

// The position of a run in its round.
struct MergeRound {
  Variable count;    // int64 [1]: the gradients of the round, with this run's
  Variable is_last;  // a bool [1]
  // The ops of the root block that make both variables: [begin, end).
  size_t begin = 0;
  size_t end = 0;
};

// Adds up each gradient in <parameter>@GRAD@GradientMerge (float32 for two-byte gradients), begins
// again after each update, and puts the sum or the mean in place of the gradient. A sparse gradient
// stays selected rows: the rows of all gradients of the round (gradient_merge_rows). Throws an
// Error (kInvalidArgument) if steps < 1.
MergeRound AppendGradientMerge(const GradientMerge& merge, std::vector<NamedGradient>* gradients,
                               const std::source_location& site);

// Returns whether `rate` is a schedule whose step counter doesn't go by such rounds yet. All
// schedules of a program share the counter, so it throws an Error (kInvalidArgument) if the rate of
// an earlier optimizer goes by rounds of another length.
bool HasToSlowSchedules(const LearningRate& rate, const GradientMerge& merge,
                        const std::source_location& site);

// Makes the schedules of the program advance once per round, as with one large batch. Moves ops, so
// it must be the last change to the program.
void AdvanceSchedulesByRound(const GradientMerge& merge, const MergeRound& round,
                             const std::source_location& site);

// Returns a bool [1]: true if `squared_norm`, the SquaredGlobalNorm of the gradients, isn't finite,
// because an element isn't (or, in float64, is too large). Counts in kSkippedUpdates how often that
// was so while `skip`, which may be undefined, was false.
Variable AppendNonFiniteCheck(const Variable& squared_norm, const Variable& skip,
                              const std::source_location& site);

}  // namespace skiff
