// The libraries that Skiff's kernels call.
#pragma once

#include "framework/op/registry.h"

namespace skiff {

// Names them to the registry, each with its version and what it uses of this processor.
void SetKernelLibraries(OpRegistry& registry);

}  // namespace skiff
