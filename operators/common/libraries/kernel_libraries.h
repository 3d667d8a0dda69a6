// Registration of the libraries that Skiff's kernels call.
#pragma once

#include "framework/op/registry.h"

namespace skiff {

// Limits the libraries to the instruction set that Skiff uses (UsedInstructionSet), and registers
// each library with its version and its instruction set on this processor. Throws what
// UsedInstructionSet throws, and Error (kFailedPrecondition) if oneDNN can't be limited any more.
void SetKernelLibraries(OpRegistry& registry);

}  // namespace skiff
