// batch_norm and the op that adds and rectifies behind it: attributes, shape rules and kernels.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "framework/op/registry.h"

namespace skiff {

class GradContext;

std::vector<AttrDef> BatchNormAttrs();

// Whether Mean and Variance normalize, rather than the batch's statistics.
bool UsesGlobalStatistics(const OpContext& context);

// Error unless the input slots, where present, hold one value a channel, of X's dtype.
void CheckByChannel(const OpContext& context, int64_t channels,
                    std::initializer_list<const char*> slots);

// The slots and shape rules of batch_norm and of its gradient op: Fluid's.
OpDef BatchNormDefinition();
OpDef BatchNormGradDefinition();

// The usual rule, which passes the running statistics a second time where they were used, as
// Fluid's does.
std::vector<Op> BatchNormGradOps(const GradContext& context, const GradRule& usual);

// Registers the kernels of `type`, which has batch_norm's slots or those of batch_norm_act,
// and of `type`_grad.
void AddBatchNormKernels(OpRegistry& registry, const std::string& type);

// Registers the kernels of `type`, which has the slots of batch_norm_act_replay.
void AddBatchNormReplayKernels(OpRegistry& registry, const std::string& type);

}  // namespace skiff
