// The storage of variables that lie one behind the other in a scope.
#pragma once

#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Moves what the scope holds of the lists of every update op of the root block that is_flat
// (UpdateRule::lists; persistables only): each list into a buffer of its own, its tensors at
// multiples of `alignment_bytes`, a power of two, in the order of the list. A list that lies so
// already stays where it is. A list of which the scope lacks a variable, or holds one with another
// dtype or without data, is left alone, as are the tensors that the scope shares with the caller:
// the caller keeps the old ones.
//
// Moving advances the scope's generation. Error (kResourceExhausted) if there is no memory; then
// lists have moved as a whole or not at all.
void FlattenScope(const OpRegistry& registry, const Program& program, int64_t alignment_bytes,
                  Scope* scope);

}  // namespace skiff
