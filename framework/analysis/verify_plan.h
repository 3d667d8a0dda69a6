// Checks what the executor relies on in a plan: for tests of passes, and for debug builds.
#pragma once

#include <string>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// All that is wrong with the plan, one message each, naming the instruction:
// - an instruction without op, or with another number of values than its op has arguments;
// - data that is read before an instruction writes it, unless it lies in the scope or is fed;
// - a value of the arena that is written twice, or a feed that is written;
// - a value that is read after its storage was given to another one: a variable of the scope that
//   was written since, or a value computed in place;
// - in a fused instruction, data that a member reads and nobody hands to it, or an output that no
//   member writes;
// - a fetch that nothing writes, or that something has overwritten;
// - where nothing else is wrong: a list of contiguous values that can't be or, once storage is
//   planned, isn't.
std::vector<std::string> VerifyPlan(const Plan& plan);

// Error (kInvalidArgument) with all messages if there are any.
void CheckPlan(const Plan& plan);

}  // namespace skiff
