// Multiply-adds of a plan's matrix products and convolutions, counted from its shapes.
#pragma once

#include "framework/plan/plan.h"

namespace skiff {

// FLOP (a multiply-add is 2) of one run by the textbook formulas: conv2d, depthwise_conv2d, mul,
// matmul_v2 and their gradients, each gradient that is computed counting as much as the forward op.
// Element-wise work isn't counted.
double CountFlop(const Plan& plan);

}  // namespace skiff
