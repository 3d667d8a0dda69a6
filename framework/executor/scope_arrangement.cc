#include "framework/executor/scope_arrangement.h"

#include "framework/executor/storage/scope_places.h"
#include "framework/executor/storage/sharded_states.h"

namespace skiff {

void ScopeArrangement::Update(const PlanSources& sources) {
  Scope* scope = sources.scope;
  const auto state_of_scope = [&] { return std::pair(scope->generation(), scope->size()); };
  if (state_of_scope() == arranged_) return;
  // First, so that whole states needn't fit into the memory of a device.
  ShardStates(*sources.program, scope);
  MoveToPlaces(*sources.registry, *sources.program, sources.place, scope);
  flat_scope_.Flatten(*sources.registry, *sources.program,
                      sources.options.memory.flat_alignment_bytes, scope);
  arranged_ = state_of_scope();
}

}  // namespace skiff
