// Lowers `recurrent`, which runs a block for each part of its inputs along dim 0. Internal to
// framework/executor.
#pragma once

#include <memory>

#include "framework/executor/lowering/loop_form.h"

namespace skiff {

// Parts of `inputs` enter each iteration, and parts of `outputs` leave it. States are carried:
// `ex_states` are `initial_states` in the first iteration, then `states` of the iteration before.
std::unique_ptr<LoopForm> MakeRecurrentForm();

}  // namespace skiff
