// How a plan uses the variables of the scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Return whether the instruction writes, or reads, scope storage that holds one of the values.
bool WritesScopeOf(const Plan& plan, const std::vector<ValueId>& values,
                   const Instruction& instruction);
bool ReadsScopeOf(const Plan& plan, const std::vector<ValueId>& values,
                  const Instruction& instruction);

// Instructions [begin, end) of a plan.
struct InstructionRange {
  size_t begin = 0;
  size_t end = 0;
};

// Returns the instructions that run if [begin, end) do: all of the plan if the boundary of a loop's
// body is in the range, since all iterations run between the halves of a body; else [begin, end).
InstructionRange RunWith(const Plan& plan, size_t begin, size_t end);

// Return whether an instruction that runs with [begin, end) writes scope storage of one of the
// values, or reads such storage.
bool WritesScopeOf(const Plan& plan, const std::vector<ValueId>& values, size_t begin, size_t end);
bool ReadsScopeOf(const Plan& plan, const std::vector<ValueId>& values, size_t begin, size_t end);

// The inputs whose data stays the same from run to run: scope variables that the plan never writes.
class ConstantInputs {
 public:
  // The plan must outlive the object, and values that its instructions write must not change.
  explicit ConstantInputs(const Plan& plan);

  // Returns, for each input of an instruction, whether it is constant.
  std::vector<bool> Of(const Instruction& instruction) const;

 private:
  const Plan& plan_;
  std::unordered_set<std::string_view> written_;  // variables
};

}  // namespace skiff
