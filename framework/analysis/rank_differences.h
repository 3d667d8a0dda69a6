// Which variables of a program differ between ranks that run it on data of their own.
#pragma once

#include <string_view>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

// Returns whether the op, which has this definition and writes the variable, gives all ranks the
// same: it is collective, and the variable isn't one of OpDef::own_outputs.
bool GivesAllRanksTheSame(const OpDef& def, const Op& op, std::string_view variable);

// Checks that all ranks keep the same persistables, if they begin with the same. What a run is fed
// differs, and so does what random ops draw. The outputs of an op differ if data that it reads
// differs; the outputs of a collective op are the same, except OpDef::own_outputs. Sums of
// gradients within a round (OpDef::accumulation) may differ.
//
// Throws an Error (kUnimplemented) for an op that writes a persistable which would differ, with the
// op's place and a variable that the op reads, and the Errors of UsesOf.
void CheckSameOnAllRanks(const OpRegistry& registry, const Program& program);

}  // namespace skiff
