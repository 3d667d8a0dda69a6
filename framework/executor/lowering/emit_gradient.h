// Emits the gradient half of a loop or branch at its gradient op. Internal to framework/executor.
#pragma once

#include <cstddef>

#include "framework/executor/lowering/block_lowering.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// Appends the gradient half that was prepared with the forward op (BlockLowering::gradients), with
// the values that its variables have now. A gradient that no op has written is zeros.
//
// Throws an Error (kUnimplemented) if no gradient half is prepared for the op; (kInvalidArgument)
// if a gradient doesn't fit its variable; (kFailedPrecondition) if no op has written an array from
// which the gradient half takes gradients; and the Errors of CheckScopeIsAsBefore.
void EmitGradient(BlockLowering* outer, const Op& op, const OpDef& def, size_t position);

// Throws an Error (kFailedPrecondition) if an op between a loop and its gradient half, which is an
// instruction of `outer` or will be one, has written a variable of the scope that the gradient half
// reads. Both halves must find the same elements there.
void CheckScopeIsAsBefore(const BlockLowering& outer, const Instruction& gradient);

}  // namespace skiff
