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

// Flattens what a scope holds for one program.
class FlatScope {
 public:
  // Moves each list of every update op of the root block that is_flat (UpdateRule::lists) into a
  // buffer of its own, if all its variables are persistables. The tensors keep the order of the
  // list and begin at multiples of FlatAlignment(`alignment_bytes`), a power of two. A variable in
  // several lists belongs to the first of them, where ops that update parameters come before those
  // of sums.
  //
  // A list stays where it is if it is flat already, and if the scope lacks one of its variables or
  // holds one with another dtype or without data. A tensor that the scope shares with the caller
  // stays the caller's; the scope gets another one. From the second call on, a list also stays if
  // another program has since put one of its variables into another buffer: both programs compute
  // the same either way and would otherwise move it to and fro for ever.
  //
  // Moving advances the scope's generation. Throws an Error (kResourceExhausted) if there is no
  // memory; each list has then moved as a whole or not at all.
  void Flatten(const OpRegistry& registry, const Program& program, int64_t alignment_bytes,
               Scope* scope);

 private:
  // Buffers of lists that were laid out as this program wants them, as long as they exist.
  std::set<std::weak_ptr<Buffer>, std::owner_less<>> own_;
  bool has_flattened_ = false;
};

}  // namespace skiff
