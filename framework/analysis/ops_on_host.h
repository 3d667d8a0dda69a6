// Tells which ops of a plan on a device run on the CPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/plan/plan.h"

namespace skiff {

// Returns how many instructions of each type (Instruction::Name) run on the CPU, though the plan is
// on a device: for want of a kernel, or since branches, and ops whose shapes depend on data, always
// do (PlacementPass). Leaves out copies, ops whose work is on the host (OpDef::is_on_host), and ops
// that make single elements for the host, such as the counter of a loop. Empty for a plan on the
// CPU.
std::map<std::string, int64_t> OpsOnHost(const Plan& plan);

}  // namespace skiff
