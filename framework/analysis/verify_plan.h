// Checks everything that the executor relies on in a plan, for tests of passes and for debug
// builds.
#pragma once

#include <string>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Returns one message per problem of the plan, naming the instruction:
// - an instruction without op, or with another number of values than its op has arguments;
// - data that is read before an instruction writes it and is neither in the scope nor fed;
// - an arena value that is written twice, or a feed that is written;
// - a value that is read after another took over its storage: a scope variable that was written
//   since, or a value computed in place;
// - in a loop, a link to an input or output that it lacks;
// - in a fused instruction, data that a member reads and nothing provides, or an output that no
//   member writes;
// - a fetch that nothing writes, or that something has overwritten;
// - if nothing else is wrong: an instruction in the wrong stream, or a missing wait for the other
//   stream (StreamMistakes);
// - if nothing else is wrong: a list of contiguous values that can't be contiguous or, once storage
//   is planned, isn't.
std::vector<std::string> VerifyPlan(const Plan& plan);

// Throws Error (kInvalidArgument) with all messages if there are any.
void CheckPlan(const Plan& plan);

}  // namespace skiff
