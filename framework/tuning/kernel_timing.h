// Measures how long kernels take.
#pragma once

#include <vector>

#include "framework/op/kernel.h"
#include "framework/tuning/tuning_key.h"

namespace skiff {

// Times kernels on tensors of their own, with the workspace and derived forms that a plan would
// give them. The time to make a derived form counts unless its input is constant. Floating-point
// inputs hold random numbers in [0.5, 1.5), since some are variances or divisors; other inputs hold
// zeros. Each candidate runs once uncounted. Then all run in turn, at least once and at most 20
// times, until 0.3 seconds have passed. Returns the least time of each: whatever else the machine
// does only adds to it. Throws what kernels throw.
std::vector<double> TimeKernels(const TuningRequest& request,
                                const std::vector<const KernelDef*>& candidates);

}  // namespace skiff
