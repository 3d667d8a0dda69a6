// The flags of tools that compile programs: --passes, --also_passes, --pass_limit and
// --dump_passes, and those of their memory.
#pragma once

#include <gflags/gflags_declare.h>

#include "framework/transpiler/pass.h"

DECLARE_string(passes);
DECLARE_string(policy);
DECLARE_string(recompute);

namespace skiff {

// What the flags say. Error for a --pass_limit that is none, and if --dump_passes can't be made.
PipelineOptions PassesFromFlags();

// --policy, --recompute, --checkpoints, --budget_bytes and --flat_alignment_bytes. Error for values
// that there aren't.
MemoryOptions MemoryFromFlags();
// Of this policy, whatever --policy says.
MemoryOptions MemoryFromFlags(ReusePolicy policy);

}  // namespace skiff
