// What passes do with the options that save memory.
#pragma once

#include "framework/plan/plan.h"
#include "framework/transpiler/api/memory_options.h"
#include "memory/reuse_policy.h"

namespace skiff {

// Marks the values of the variables that `skip` and `checkpoints` name (PlanValue::is_exclusive,
// is_checkpoint). RunPlanPasses does so before the first pass.
void MarkNamedValues(const MemoryOptions& memory, Plan* plan);

}  // namespace skiff
