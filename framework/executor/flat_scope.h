// The storage of variables that lie one behind the other in a scope.
#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/tensor/scope.h"
#include "memory/allocator.h"

namespace skiff {

// Lays flat what a scope holds for one program.
class FlatScope {
 public:
  // Moves the lists of every update op of the root block that is_flat (UpdateRule::lists;
  // persistables only): each list into a buffer of its own, its tensors at multiples of
  // FlatAlignment(`alignment_bytes`, a power of two), in the order of the list. Of a variable in
  // several lists the first one counts, those of ops that update parameters before those of sums.
  // A list that lies so already stays where it is. A list of which the scope lacks a variable, or
  // holds one with another dtype or without data, is left alone, as are the tensors that the scope
  // shares with the caller: the caller keeps the old ones.
  //
  // From the second call on, a list with a variable that another program has laid beside others
  // since is left alone, too: both programs compute the same either way, and would else move it to
  // and fro for ever.
  //
  // Moving advances the scope's generation. Error (kResourceExhausted) if there is no memory; then
  // lists have moved as a whole or not at all.
  void Flatten(const OpRegistry& registry, const Program& program, int64_t alignment_bytes,
               Scope* scope);

 private:
  // Buffers of lists that lay as this program wants them; those that still exist.
  std::set<std::weak_ptr<Buffer>, std::owner_less<>> own_;
  bool has_flattened_ = false;
};

}  // namespace skiff
