// Fills dead memory in the arena of a plan with NaN, so that a read that comes too late shows. In
// an arena with guards, where nothing is dead, it fills all values with another number before a
// run: a read that comes before the first write then gives another result than without guards.
#pragma once

#include <cstddef>
#include <vector>

#include "framework/executor/storage/bound_values.h"
#include "framework/plan/plan.h"
#include "memory/byte_range_set.h"

namespace skiff {

// For a plan on the CPU whose storage is planned. `values` must outlive the poison.
class ArenaPoison {
 public:
  ArenaPoison(const Plan& plan, const ValueTensors& values);

  // Poisons the whole arena: before a run.
  void PoisonAll() const;
  // Poisons the memory that is dead once the instruction has run.
  void PoisonAfter(size_t instruction) const;

 private:
  void Poison(const ByteRange& range) const;

  const ValueTensors& values_;
  const int byte_;
  std::vector<ByteRange> before_;                   // a run
  std::vector<std::vector<ByteRange>> dead_after_;  // by instruction
};

}  // namespace skiff
