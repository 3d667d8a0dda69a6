// The kernels of multihead_attention and of its gradient op.
#pragma once

#include "framework/op/registry.h"

namespace skiff {

// Adds the kernels of both ops, in float32 and float64, and those for bfloat16 if there are any.
void AddAttentionKernels(OpRegistry& registry);

}  // namespace skiff
