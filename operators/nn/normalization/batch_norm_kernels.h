// The kernels of batch_norm, sync_batch_norm, batch_norm_act and batch_norm_replay.
#pragma once

#include <string_view>

#include "framework/op/registry.h"

namespace skiff {

// Registers the kernels of `type`, which has the slots of batch_norm or batch_norm_act, and of
// <type>_grad. A collective op takes the statistics of the batches of all ranks.
void AddBatchNormKernels(OpRegistry& registry, std::string_view type);

// Registers the kernels of `type`, which has the slots and attributes of batch_norm_replay.
void AddBatchNormReplayKernels(OpRegistry& registry, std::string_view type);

}  // namespace skiff
