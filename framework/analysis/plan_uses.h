// Which instructions write and read the values of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Returns, for each value, the indices of the instructions that read its data, in order. A fetch
// counts as a read by an instruction after the last.
ValueTable<std::vector<size_t>> DataReaders(const Plan& plan);
// The same for the instructions that read the value's data or only its shape.
ValueTable<std::vector<size_t>> AllReaders(const Plan& plan);

// Writers and readers of a plan's values. The plan must outlive this object and must not change
// meanwhile.
class PlanUses {
 public:
  static constexpr size_t kNobody = static_cast<size_t>(-1);

  explicit PlanUses(const Plan& plan);

  const Shape& ShapeOf(ValueId value) const;
  // Returns the instruction that writes the value; kNobody if none does or there is no value.
  size_t WriterOf(ValueId value) const;
  // Returns the instructions that read the value's data, in order. A fetch counts as one after the
  // last.
  const std::vector<size_t>& ReadersOf(ValueId value) const;
  // Returns the only instruction that reads the data of an arena value; kNobody if there are
  // several, if the user wants to keep the value (is_checkpoint), or if there is no
  // value.
  size_t OnlyReader(ValueId value) const;

 private:
  const Plan& plan_;
  ValueTable<std::vector<size_t>> readers_;
  ValueTable<size_t> writer_;
};

}  // namespace skiff
