// Running statistics (OpDef::running_state), such as the mean of a batch norm: which ops change
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/op/op_def.h"

namespace skiff {

// Returns whether the op has running statistics and updates them. If it doesn't, its other outputs
// depend on them. If it does, neither its other outputs nor its gradient do.
bool UpdatesRunningState(const OpDef& def, const Op& op);

// Returns whether the slot is an output with running statistics.
bool IsRunningState(const OpDef& def, std::string_view output_slot);

// Returns the variables that the op names as inputs and outputs for statistics which it leaves as
// they are. So it doesn't write them.
std::vector<std::string> KeptRunningState(const OpDef& def, const Op& op);

}  // namespace skiff
