// Differentiates ops that run a block: loops and branches. Internal to framework/autodiff.
#pragma once

#include "framework/autodiff/block_backward.h"

namespace skiff {

// Differentiates the block of an op with a BlockRule: a BlockDifferentiator.
//
// What a variable wants and which gradients there are follow from the iterations before and after,
// so both are fixpoints: a state whose first value wants no gradient carries a gradient if later
// values depend on a parameter. A state that no op reads after the loop has a gradient if it only
// feeds the next iteration. Counters and conditions get none. The op's outputs are @EMPTY@ where no
// gradient arises. Throws what BlockBackward throws.
BlockGradient DifferentiateBlock(const BlockGradientRequest& request);

}  // namespace skiff
