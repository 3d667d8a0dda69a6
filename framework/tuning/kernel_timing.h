// How long kernels and copies between layouts take.
#pragma once

#include <functional>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/tuning/tuning_key.h"

namespace skiff {

// Seconds that a run of each candidate takes, in their order. All accept the op.
using KernelTimer = std::function<std::vector<double>(
    const TuningRequest& request, const std::vector<const KernelDef*>& candidates)>;

// Seconds that a copy of a tensor to another layout takes.
using CopyTimer = std::function<double(const TensorMeta& from, Layout to)>;

// Times kernels on tensors of their own, with workspace and derived forms as a plan gives them;
// making a derived form counts unless its input is constant. Floating-point inputs hold random
// numbers in [0.5, 1.5), since some are variances or divisors; others zeros. Each candidate runs
// once beforehand; then all run in turn, up to 20 times while that takes no more than 0.3 seconds
// in all (but at least once). The least time of each counts: what else the machine does only adds
// to it. Errors of kernels.
std::vector<double> TimeKernels(const TuningRequest& request,
                                const std::vector<const KernelDef*>& candidates);

// CopyBetweenLayouts, timed as kernels are.
double TimeCopy(const TensorMeta& from, Layout to);

}  // namespace skiff
