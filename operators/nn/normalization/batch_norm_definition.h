// The attributes, slots and shape rules of batch_norm, of sync_batch_norm, and of batch_norm_act,
// which also adds and rectifies.
#pragma once

#include <string>
#include <vector>

#include "framework/op/registry.h"

namespace skiff {

class GradContext;

std::vector<AttrDef> BatchNormAttrs();

// Returns whether the op normalizes by Mean and Variance instead of the batch's statistics.
bool UsesGlobalStatistics(const OpContext& context);

// Return the definitions of batch_norm and of its gradient op, with Fluid's slots and shape rules.
OpDef BatchNormDefinition();
OpDef BatchNormGradDefinition();

// Returns the ops of the usual rule. If the op used the running statistics, the gradient op also
// takes them a second time, as in Fluid.
std::vector<Op> BatchNormGradOps(const GradContext& context, const GradRule& usual);

// Returns that rule with the slots of Fluid's batch_norm_grad, for a gradient op of this type.
GradRule BatchNormGradRule(StaticText type);

}  // namespace skiff
