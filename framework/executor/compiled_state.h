// State that a compiled program shares with all programs bound by it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "framework/executor/plan_cache.h"
#include "framework/executor/plan_sources.h"
#include "framework/tensor/scope.h"
#include "framework/transpiler/api/pass_options.h"
#include "memory/device.h"
#include "memory/places.h"

namespace skiff {

namespace internal {

struct CompiledState {
  // `turns`: the executor's, or a clone's own. `scope_of_clone` is nullptr unless the program is a
  // clone.
  CompiledState(PlanSources made_from, std::vector<PassReport> of_passes,
                std::shared_ptr<std::recursive_mutex> turns,
                std::unique_ptr<Scope> scope_of_clone = nullptr)
      : mutex(std::move(turns)),
        own_scope(std::move(scope_of_clone)),
        sources(std::move(made_from)),
        reports(std::move(of_passes)),
        plans(sources) {}
  ~CompiledState();
  CompiledState(const CompiledState&) = delete;
  CompiledState& operator=(const CompiledState&) = delete;

  const std::shared_ptr<std::recursive_mutex> mutex;
  const std::unique_ptr<Scope> own_scope;
  const PlanSources sources;
  const std::vector<PassReport> reports;
  PlanCache plans;  // for who has a Turn
};

// Whoever uses plans holds a Turn. Recursive: an observer of passes may run a program, and a
// tensor's memory may be freed anywhere. The program's device is the thread's current one
// meanwhile.
class Turn {
 public:
  explicit Turn(const CompiledState& state)
      : lock_(*state.mutex), device_(UsePlace(state.sources.place)) {}

 private:
  const std::lock_guard<std::recursive_mutex> lock_;
  const DeviceUse device_;
};

inline CompiledState::~CompiledState() {
  const Turn turn(*this);
  plans.Clear();
}

}  // namespace internal
using internal::CompiledState;
using internal::Turn;

}  // namespace skiff
