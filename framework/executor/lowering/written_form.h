// Lowers ops whose block writes variables outside: `while` and `conditional_block`. Internal to
// framework/executor.
#pragma once

#include <memory>

#include "framework/executor/lowering/loop_form.h"

namespace skiff {

// Variables outside that the block writes are carried from iteration to iteration. A variable
// without a value before the op gets its value from the last iteration.
//
// Of `while`, which runs its block as long as a variable is true:
std::unique_ptr<LoopForm> MakeWhileForm();
// Of `conditional_block`, which runs its block once if a variable is true or if none of its
// variables is empty (`is_scalar_condition`):
std::unique_ptr<LoopForm> MakeConditionalForm();

}  // namespace skiff
