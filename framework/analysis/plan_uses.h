// Who writes and who reads the values of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// By value, the indices of the instructions that read its data, in order; a fetch counts as a read
// by an instruction behind the last.
std::vector<std::vector<size_t>> DataReaders(const Plan& plan);

// Of a plan that outlives it and isn't changed meanwhile.
class PlanUses {
 public:
  static constexpr size_t kNobody = static_cast<size_t>(-1);

  explicit PlanUses(const Plan& plan);

  const Shape& ShapeOf(int32_t value) const;
  // The instruction that writes the value; kNobody if none does, or value is -1.
  size_t WriterOf(int32_t value) const;
  // The instructions that read the value's data, in order; a fetch counts as one behind the last.
  const std::vector<size_t>& ReadersOf(int32_t value) const;
  // The only instruction that reads the value's data, which lies in the arena; kNobody if there are
  // others, if the user wants the value to be there (Plan::memory.checkpoints), or value is -1.
  size_t OnlyReader(int32_t value) const;

 private:
  const Plan& plan_;
  std::vector<std::vector<size_t>> readers_;  // by value
  std::vector<size_t> writer_;                // by value
};

}  // namespace skiff
