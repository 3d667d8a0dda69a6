// Registration of the ops that update parameters.
#pragma once

#include <functional>

#include "framework/op/registry.h"
#include "operators/optimizer/kernels/update_loop.h"
#include "operators/optimizer/kernels/update_numbers.h"
#include "operators/optimizer/kernels/update_op.h"

namespace skiff {

// Adds the op with its CPU kernels, for dense gradients and for selected rows. Each kernel calls
// `loops` and `rule` once with its op, since the instruction set may have changed since the last
// kernel.
void RegisterUpdateOp(OpRegistry& registry, const UpdateOp& op,
                      std::function<UpdateLoopSet(const OpContext&)> loops,
                      std::function<CoefficientRule(const OpContext&)> rule);

}  // namespace skiff
