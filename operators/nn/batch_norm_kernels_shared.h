// The kernels of batch_norm and of the ops that add, rectify and replay behind it.
#pragma once

#include <string>

#include "framework/op/registry.h"

namespace skiff {

// Registers the kernels of `type`, which has batch_norm's slots or those of batch_norm_act,
// and of `type`_grad.
void AddBatchNormKernels(OpRegistry& registry, const std::string& type);

// Registers the kernels of `type`, which has the slots and attributes of batch_norm_replay.
void AddBatchNormReplayKernels(OpRegistry& registry, const std::string& type);

}  // namespace skiff
