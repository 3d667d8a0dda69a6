// Fills dead memory in the arena of a plan with NaN, so that a read that comes too late shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/executor/bound_values.h"
#include "framework/plan/plan.h"

namespace skiff {

// For a plan on the CPU whose storage is planned. `values` must outlive the poison.
class ArenaPoison {
 public:
  ArenaPoison(const Plan& plan, const ValueTensors& values);

  // Poisons the whole arena: before a run.
  void PoisonAll() const { Poison({.offset = 0, .bytes = arena_bytes_}); }
  // Poisons the memory that is dead once the instruction has run.
  void PoisonAfter(size_t instruction) const;

 private:
  struct Range {
    int64_t offset = 0;
    int64_t bytes = 0;
  };

  void Poison(Range range) const;

  const ValueTensors& values_;
  int64_t arena_bytes_;
  std::vector<std::vector<Range>> dead_after_;  // by instruction
};

}  // namespace skiff
