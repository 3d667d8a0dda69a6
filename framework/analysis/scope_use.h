// How a plan uses the variables of the scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Return whether one of the instructions [begin, end) writes, or reads, scope storage that holds
// one of the values.
bool WritesScopeOf(const Plan& plan, const std::vector<ValueId>& values, size_t begin, size_t end);
bool ReadsScopeOf(const Plan& plan, const std::vector<ValueId>& values, size_t begin, size_t end);

// The inputs whose data stays the same from run to run: scope variables that the plan never writes.
class ConstantInputs {
 public:
  // The plan must outlive this object, and what its instructions write must not change.
  explicit ConstantInputs(const Plan& plan);

  // Returns, for each input of an instruction, whether it is constant.
  std::vector<bool> Of(const Instruction& instruction) const;

 private:
  const Plan& plan_;
  std::unordered_set<std::string_view> written_;  // variables
};

}  // namespace skiff
