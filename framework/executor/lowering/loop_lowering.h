// Lowers ops that run a block: loops and branches. Internal to framework/executor.
#pragma once

#include <cstddef>

#include "framework/executor/lowering/block_lowering.h"

namespace skiff {

// Lowers an op with a BlockRule: appends its instruction to `outer`.
//
// The block and the gradient block of its gradient op are lowered as one plan, the joint body
// (joint_body.h): one iteration, the gradient half after the forward half. The plan passes run on
// the joint body, which is then cut in two (cut_loop.h). Values of the forward half that the
// gradient half reads are stacked, in values of the outer plan (emit_loop.h). The gradient op's
// instruction is prepared with the forward op's; lowering the gradient op appends it
// (emit_gradient.h).
//
// Throws an Error (kUnimplemented) if the program runs its blocks in so many ways that there would
// be too many bodies, or if each iteration writes larger elements to an array; and the Errors of
// JointBody::Lower, EmitLoop and EmitGradient.
void LowerLoop(BlockLowering* outer, const Op& op, const OpDef& def, size_t position);

}  // namespace skiff
