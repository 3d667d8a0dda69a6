// The op of a loop or branch and its gradient op, as the program has them. Internal to
// framework/executor.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "framework/executor/lowering/block_lowering.h"
#include "framework/ir/program.h"
#include "framework/op/block_rule.h"
#include "framework/op/registry.h"

namespace skiff {

// An op that runs a block.
struct BlockOp {
  const Op* op = nullptr;
  const OpDef* def = nullptr;
  const Block* block = nullptr;  // that has the op
  size_t position = 0;           // of the op, for instructions and messages
  const Block* body = nullptr;   // that the op runs
};

struct LoopOps {
  BlockOp forward;
  BlockOp gradient;  // op == nullptr: there is none
  BlockSlots slots;
  // The variable that ties the gradient op to the forward op; nullptr: none.
  const std::string* scopes = nullptr;

  bool HasGradient() const { return gradient.op != nullptr; }
};

// Returns the op, and its gradient op if the blocks that `outer` lowers have one. Throws an Error
// (kInvalidArgument) if either op doesn't run exactly one block.
LoopOps FindLoopOps(const BlockLowering& outer, const Op& op, const OpDef& def, size_t position);

// Returns the slot of the gradients of a slot's variables.
std::string GradientSlot(const char* slot);

// Returns the variables of the gradient block that begin as the gradients of results, in the order
// of the gradient op's slot GradientSlot(slots.results). Requires a gradient op.
std::vector<std::string> InnerResultGradients(const LoopOps& ops);

// Returns the tensors outside of its block that a block op writes, except variables of the scope.
std::vector<const Var*> WrittenOutside(const OpRegistry& registry, const BlockOp& op);

}  // namespace skiff
