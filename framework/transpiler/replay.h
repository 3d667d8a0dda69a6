// Instructions that compute what another one has computed once more, for less.
#pragma once

#include <optional>

#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// The op that OpDef::replayed_by names, with the attributes of `instruction` (defaults written
// out), its inputs and outputs, and the outputs that it computes again, which the caller replaces;
// `origin` as in MakeInstruction. None if there is no such op, a kernel is forced on this one, a
// value is missing that the replay needs, or no kernel takes it.
std::optional<Instruction> MakeReplay(const OpRegistry& registry, Plan* plan,
                                      const Instruction& instruction, const Instruction& origin);

}  // namespace skiff
