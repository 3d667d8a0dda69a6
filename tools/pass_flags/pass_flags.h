// The flags of tools that compile programs: --passes, --pass_limit and --dump_passes.
#pragma once

#include <gflags/gflags_declare.h>

#include "framework/transpiler/pass.h"

DECLARE_string(passes);

namespace skiff {

// What the flags say. Error for a --pass_limit that is none, and if --dump_passes can't be made.
PipelineOptions PassesFromFlags();

}  // namespace skiff
