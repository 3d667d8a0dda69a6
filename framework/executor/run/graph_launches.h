// Which instructions of a plan the graphs of a device (DeviceGraphs) may hold.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/executor/run/plan_runner.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns whether a feed is ragged: kernels read LoDs on the host while issuing work, so a plan
// with ragged feeds has no graphs.
bool HasRaggedFeed(const Plan& plan);

// Returns for each instruction about how many kernels it launches; 0 if it can't be captured.
std::vector<int64_t> GraphLaunches(const Plan& plan, const PlanRunner& runner);

// Returns the instructions that wait for the communication stream, which no graph does.
std::vector<size_t> WaitsOf(const Plan& plan);

}  // namespace skiff
