// Figures of a plan, and of making plans.
#pragma once

#include <cstdint>

#include "framework/plan/api/recomputed.h"

namespace skiff {

struct PlanStatistics {
  int64_t max_live_bytes = 0;  // the lower bound for the arena
  int64_t planned_bytes = 0;   // the arena
  // On a device: the arena on the CPU, for instructions there.
  int64_t host_planned_bytes = 0;
  // The lower bound for the rows of the last run, of a plan for a capacity; else max_live_bytes.
  int64_t current_live_bytes = 0;
  int64_t unshared_bytes = 0;     // without any reuse
  int64_t derived_bytes = 0;      // other forms of parameters, owned by the plan
  int64_t persistable_bytes = 0;  // of the scope, as far as the plan uses it
  int64_t rollback_bytes = 0;     // copies of persistables, for when an op fails
  Recomputed recomputed = {};     // bodies of loops have their own (MemoryReport::loops)
  int64_t instructions = 0;
  int64_t layout_copies = 0;
  int64_t transfers = 0;  // copies between places
  int64_t graphs = 0;     // of the device, captured so far
  // On a device: the time of the host in the last run to put all work into the stream and to run
  // instructions on the CPU, without waits for the device.
  double issue_seconds = 0;
};

// The costs of a compiled program's plans and kernels.
struct PreparationStatistics {
  int64_t plans = 0;
  int64_t kernels = 0;        // with kernels for other rows of plans that exist
  double plan_seconds = 0;    // with the kernels of new plans
  double kernel_seconds = 0;  // for other rows of plans that exist
};

}  // namespace skiff
