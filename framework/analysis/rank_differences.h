// Which variables of a program differ between ranks that run it on data of their own.
#pragma once

#include <string_view>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

// Returns whether the op is collective, and its outputs are its inputs: ops such as
// c_sync_comm_stream only say when data is there.
bool IsCollectiveIdentity(const OpDef& def);

// Returns whether the op, which has this definition and writes the variable, gives all ranks the
// same: it is collective and no identity, and the variable isn't one of OpDef::own_outputs.
bool GivesAllRanksTheSame(const OpDef& def, const Op& op, std::string_view variable);

// Returns whether the op is collective, and works on activations of the rank's own batch: it has
// OpDef::layout_slots. The dims of the batch may differ between ranks. The work takes all cores of
// the rank.
bool WorksOnBatch(const OpDef& def);

// Checks that all ranks keep the same persistables, if they begin with the same. What a run is fed
// differs, and so does what random ops draw. The outputs of an op differ if data that it reads
// differs; those of a collective op are the same where GivesAllRanksTheSame says so. Sums of
// gradients within a round (OpDef::accumulation) may differ.
//
// Throws an Error (kUnimplemented) for an op that writes a persistable which would differ, with the
// op's place and a variable that the op reads, and the Errors of UsesOf.
void CheckSameOnAllRanks(const OpRegistry& registry, const Program& program);

}  // namespace skiff
