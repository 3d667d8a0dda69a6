// batch_norm and the op that adds and rectifies behind it: attributes, slots and shape rules.
#pragma once

#include <string>
#include <vector>

#include "framework/op/registry.h"

namespace skiff {

class GradContext;

std::vector<AttrDef> BatchNormAttrs();

// Whether Mean and Variance normalize, rather than the batch's statistics.
bool UsesGlobalStatistics(const OpContext& context);

// The slots and shape rules of batch_norm and of its gradient op: Fluid's.
OpDef BatchNormDefinition();
OpDef BatchNormGradDefinition();

// The usual rule, which passes the running statistics a second time where they were used, as
// Fluid's does.
std::vector<Op> BatchNormGradOps(const GradContext& context, const GradRule& usual);

}  // namespace skiff
