// Lowers `recurrent`, which runs a block for each part of its inputs along dim 0. Internal to
// framework/executor.
#pragma once

#include <memory>

#include "framework/executor/lowering/loop_form.h"

namespace skiff {

// Parts of `inputs` enter each iteration, and parts of `outputs` leave it. States are carried:
// `ex_states` begin as `initial_states`, then as what the iteration before has left in `states`.
std::unique_ptr<LoopForm> MakeRecurrentForm();

}  // namespace skiff
