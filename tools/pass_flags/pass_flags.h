// Flags of tools that compile programs: --passes, --pass_limit and --dump_passes, and the flags of
// memory planning.
#pragma once

#include <gflags/gflags_declare.h>

#include "framework/transpiler/pass.h"

DECLARE_string(passes);
DECLARE_string(policy);
DECLARE_string(recompute);

namespace skiff {

// Returns the options that the flags select. Throws Error for an illegal --pass_limit, and if
// --dump_passes can't be created.
PipelineOptions PassesFromFlags();

// Returns the options that --policy, --recompute, --checkpoints, --budget_bytes and
// --flat_alignment_bytes select. Throws Error for illegal values.
MemoryOptions MemoryFromFlags();
// Returns the same options with this policy instead of --policy.
MemoryOptions MemoryFromFlags(ReusePolicy policy);

}  // namespace skiff
