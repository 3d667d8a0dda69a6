// For plan passes that put one instruction in the place of several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// Who writes and who reads each value of a plan, and the replacements that Apply then makes. The
// plan outlives it and isn't changed by others meanwhile.
class PlanRewrite {
 public:
  static constexpr size_t kNobody = static_cast<size_t>(-1);

  PlanRewrite(const OpRegistry& registry, Plan* plan);

  // Whether instruction i is an op of the type, and no kernel is forced on it.
  bool Is(size_t i, std::string_view type) const;
  // Whether a kernel takes the instruction.
  bool HasKernel(const Instruction& instruction) const;
  // The instruction that writes the value; kNobody if none does, or value is -1.
  size_t WriterOf(int32_t value) const;
  // The instructions that read the value's data, in order; a fetch counts as one behind the last.
  const std::vector<size_t>& ReadersOf(int32_t value) const;
  // The only instruction that reads the value's data, which lies in the arena; kNobody if there are
  // others, or value is -1.
  size_t OnlyReader(int32_t value) const;

  // From Apply on, `made` stands where instruction `at` did.
  void Replace(size_t at, Instruction made);
  void Drop(size_t i) { dropped_.insert(i); }
  // Returns the number of replacements.
  int64_t Apply();

 private:
  const OpRegistry& registry_;
  Plan& plan_;
  std::vector<std::vector<size_t>> readers_;  // by value
  std::vector<size_t> writer_;                // by value
  std::map<size_t, Instruction> made_;        // by the instruction that they replace
  std::set<size_t> dropped_;
};

}  // namespace skiff
