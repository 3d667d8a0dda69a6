// What graphs of a device (DeviceGraphs) may hold of a plan.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/executor/run/plan_runner.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns whether a feed is ragged: kernels take LoDs from the host when they put their work into
// the stream, so there are no graphs.
bool HasRaggedFeed(const Plan& plan);

// Returns for each instruction about how many kernels it launches; 0 if it can't be captured.
std::vector<int64_t> GraphLaunches(const Plan& plan, const PlanRunner& runner);

}  // namespace skiff
