// What a plan does to the variables of the scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Whether one of the instructions [begin, end) writes the storage of the scope in which one of the
// values lies.
bool WritesScopeOf(const Plan& plan, const std::vector<int32_t>& values, size_t begin, size_t end);

// By input of an instruction, whether its data stays the same from run to run: of the scope, and
// never written by the plan.
std::vector<bool> ConstantInputs(const Plan& plan, const Instruction& instruction);

}  // namespace skiff
