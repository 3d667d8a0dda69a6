// Lowers ops that run a block: loops and branches. Internal to framework/executor.
#pragma once

#include <cstddef>

#include "framework/executor/block_lowering.h"

namespace skiff {

// Lowers an op with a BlockRule: appends its instruction to `outer`.
//
// The block and the gradient block of its gradient op are lowered as one plan, a line: one
// iteration, the gradient half after the forward half. The plan passes run on the line, which is
// then cut in two. What the second half reads of the first is stacked, in values of the outer plan.
//
// Throws an Error (kInvalidArgument) if a variable changes its shape or dtype from one iteration to
// the next, if parts of stacks don't fit together or if a gradient that the op declares isn't made;
// (kFailedPrecondition) if an op between the loop and its gradient writes a variable of the scope
// that the gradient half reads; (kUnimplemented) for what docs/loops.md lists as its limits; and
// what lowering throws for the ops of the blocks, with their places.
void LowerLoop(BlockLowering* outer, const Op& op, const OpDef& def, size_t position);

// Throws an Error (kFailedPrecondition) if an op between a loop and its gradient half, which is an
// instruction of `outer` or will be one, has written a variable of the scope that the gradient half
// reads: it must find there what the forward half has found.
void CheckScopeIsAsBefore(const BlockLowering& outer, const Instruction& gradient);

}  // namespace skiff
