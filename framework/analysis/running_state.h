// Running statistics (OpDef::running_state), such as the mean of a batch norm: which ops change
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/op/op_def.h"

namespace skiff {

// Returns whether the op has running statistics and updates them. An op that only reads its
// statistics computes other outputs from them. If the op updates them, neither its other outputs
// nor the gradient depend on the statistics.
bool UpdatesRunningState(const OpDef& def, const Op& op);

// Returns whether the slot is an output with running statistics.
bool IsRunningState(const OpDef& def, std::string_view output_slot);

// Returns the variables that the op names as inputs and outputs for statistics, but doesn't update.
// The op doesn't write these variables.
std::vector<std::string> KeptRunningState(const OpDef& def, const Op& op);

}  // namespace skiff
