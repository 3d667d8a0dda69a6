// Makes the instructions of a loop or branch of the halves of its body. Internal to
// framework/executor.
#pragma once

#include "framework/executor/lowering/cut_loop.h"
#include "framework/executor/lowering/joint_body.h"
#include "framework/executor/lowering/loop_form.h"

namespace skiff {

// Appends the instruction of the forward half to the outer block, which gets the results and a
// stack for each stash, named like the value and "@STACK". Prepares the instruction of the gradient
// half, if there is one, for the gradient op (PreparedGradient).
//
// `body` is lowered by `form`, and CutLoop has made `halves` of the plan of `body`. The
// instructions keep the plan of the joint body (Loop::joint_body) if rows may vary from run to run
// or from iteration to iteration.
//
// Throws the Errors of LoopForm::Runs; an Error (kOutOfRange) if stacks would be too large; and the
// Errors of BlockLowering::Write for the results.
void EmitLoop(JointBody* body, const LoopForm& form, LoopHalves halves);

}  // namespace skiff
