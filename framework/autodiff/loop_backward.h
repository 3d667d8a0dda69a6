// Differentiates ops that run a block: loops and branches. Internal to framework/autodiff.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>

#include "framework/analysis/definitions.h"
#include "framework/autodiff/block_backward.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

// The gradient of an op that runs a block.
struct BlockGradient {
  Op op;                           // the gradient op, without its block
  const Block* forward = nullptr;  // the forward op's block
  bool is_loop = false;
  std::unique_ptr<BackwardNames> names;
  std::unique_ptr<BlockBackward> inner;  // differentiated
  // Variables of the forward block whose gradients exist when the gradient block begins.
  std::set<std::string> seeds;
  // Variables whose gradients go from each iteration to the one before.
  std::set<std::string> carried;
  // Variables of `carried` that the block overwrites before it reads them: their gradients end as
  // 0.
  std::set<std::string> reset;
  // Inputs that the forward op needs in addition.
  SlotArguments added_inputs;
};

struct BlockGradientRequest {
  const OpRegistry& registry;
  const Block& outer;  // of the forward op
  size_t position = 0;
  const BlockDefinitions& definitions;  // of `outer`
  // Variables that the block uses and that want a gradient before the op runs.
  const std::unordered_set<std::string>& wanted;
  // Results that have a gradient.
  const std::set<std::string>& given;
  const BlockBackward::Filter& excluded;
};

// Differentiates the block of an op with a BlockRule.
//
// What a variable wants and which gradients there are follow from the iterations before and after,
// so both are fixpoints: a state whose first value wants no gradient carries a gradient if later
// values depend on a parameter. A state that no op reads after the loop has a gradient if it only
// feeds the next iteration. Counters and conditions get none. The op's outputs are @EMPTY@ where no
// gradient arises. Throws what BlockBackward throws.
BlockGradient DifferentiateBlock(const BlockGradientRequest& request);

}  // namespace skiff
