// What a plan does to the variables of the scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// Whether one of the instructions [begin, end) writes the storage of the scope in which one of the
// values lies.
bool WritesScopeOf(const Plan& plan, const std::vector<int32_t>& values, size_t begin, size_t end);

// Inputs whose data stays the same from run to run: of the scope, and never written by the plan.
class ConstantInputs {
 public:
  // The plan must outlive it, and nothing that its instructions write may change.
  explicit ConstantInputs(const Plan& plan);

  // By input of one of its instructions.
  std::vector<bool> Of(const Instruction& instruction) const;

 private:
  const Plan& plan_;
  std::unordered_set<std::string_view> written_;  // variables
};

}  // namespace skiff
