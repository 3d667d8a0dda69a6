// Keeps the variables of a scope where a compiled program wants them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "framework/executor/plan_sources.h"
#include "framework/executor/storage/flat_scope.h"

namespace skiff {

class ScopeArrangement {
 public:
  // Makes shards of states (ShardStates), and moves variables of the scope to the program's places
  // (MoveToPlaces) and flat buffers (FlatScope). Does nothing unless the scope's storage has moved
  // or the scope has other variables since the last call. Must come before a plan is made: moving
  // tensors advances the scope's generation, which would make that plan stale at once. Throws an
  // Error (kResourceExhausted) if there is no memory, and what ShardStates throws.
  void Update(const PlanSources& sources);

 private:
  FlatScope flat_scope_;
  // Generation and number of variables of the scope after the last Update.
  std::pair<uint64_t, size_t> arranged_ = {std::numeric_limits<uint64_t>::max(), 0};
};

}  // namespace skiff
