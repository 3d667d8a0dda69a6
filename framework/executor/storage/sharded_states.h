// The optimizer states of which each rank keeps a part: the pass shard_optimizer says which.
//
// The scope holds either the states of a list, whole, or the shard with this rank's part. Whole
// states, which the startup program makes and checkpoints hold, become a shard before the next plan
// is made; so whoever loads, sets or saves states needs to know nothing of ranks.
#pragma once

#include <memory>

#include "framework/comm/communicator.h"
#include "framework/ir/program.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Cuts the part of this rank out of whole states, and erases them, which frees their memory. States
// that the scope lacks keep their values in the shard. Throws an Error (kFailedPrecondition) if
// there is neither a state nor a shard of its list, (kInvalidArgument) if the scope holds a state
// with another dtype or shape than the program declares, and (kResourceExhausted) if there is no
// memory; each list is then whole, or a shard, as before.
void ShardStates(const Program& program, Scope* scope);

// Returns a scope with all variables of `scope`, in its memory, but on rank 0 with whole states, on
// the CPU, in place of shards. All ranks call it, with a communicator of memory on the CPU; it
// throws what Exchange throws. ShardStates has been called for the program.
std::unique_ptr<Scope> GatherStates(const Program& program, const Scope& scope,
                                    Communicator* communicator);

}  // namespace skiff
