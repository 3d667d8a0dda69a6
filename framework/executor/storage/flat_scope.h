// Stores variables of a scope one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/tensor/scope.h"
#include "memory/allocator.h"

namespace skiff {

// Flattens the variables of a scope for one program.
class FlatScope {
 public:
  // Moves each list (UpdateRule::lists) of every update op of the root block that is_flat into a
  // buffer of its own, if all variables of the list are persistables. The tensors keep the order of
  // the list and begin at multiples of FlatAlignment(`alignment_bytes`), a power of two. A variable
  // in several lists belongs to the first list; ops that update parameters come before other
  // updates.
  //
  // A list doesn't move if it is flat already, or if the scope lacks one of the variables or holds
  // a variable with another dtype or without data. A tensor that the scope shares with the caller
  // stays the caller's; the scope gets another one. From the second call on, a list also stays if
  // another program has since moved one of the variables to another buffer: otherwise the two
  // programs would move the variable to and fro for ever. Both compute the same either way.
  //
  // Moving advances the scope's generation. Throws an Error (kResourceExhausted) if there is no
  // memory; each list has then moved as a whole or not at all.
  void Flatten(const OpRegistry& registry, const Program& program, int64_t alignment_bytes,
               Scope* scope);

 private:
  // Buffers with lists in the layout of this program, as long as the buffers exist.
  std::set<std::weak_ptr<Buffer>, std::owner_less<>> own_;
  bool has_flattened_ = false;
};

}  // namespace skiff
