// Makes instructions that recompute a result for less work than the first time.
#pragma once

#include <optional>

#include "framework/plan/plan.h"
#include "framework/transpiler/pass_context.h"

namespace skiff {

// Returns an instruction of the op that OpDef::replayed_by names, with the attributes of
// `instruction` (defaults written out), its inputs and outputs, and the recomputed outputs, which
// the caller replaces. `origin` is as in MakeInstruction. Returns nothing if there is no such op,
// if a kernel is forced on the op of `instruction`, if a value is missing that the replay needs, or
// if no kernel takes the replay.
std::optional<Instruction> MakeReplay(const PassContext& context, Plan* plan,
                                      const Instruction& instruction, const Instruction& origin);

}  // namespace skiff
