// For plan passes that put one instruction in the place of several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>

#include "framework/analysis/plan_uses.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// A plan's uses, and the replacements that Apply then makes.
class PlanRewrite : public PlanUses {
 public:
  PlanRewrite(const OpRegistry& registry, Plan* plan);

  // Whether instruction i is an op of the type, and no kernel is forced on it.
  bool Is(size_t i, std::string_view type) const;
  // Whether a kernel takes the instruction.
  bool HasKernel(const Instruction& instruction) const;

  // From Apply on, `made` stands where instruction `at` did.
  void Replace(size_t at, Instruction made);
  void Drop(size_t i) { dropped_.insert(i); }
  // Returns the number of replacements.
  int64_t Apply();

 private:
  const OpRegistry& registry_;
  Plan& plan_;
  std::map<size_t, Instruction> made_;  // by the instruction that they replace
  std::set<size_t> dropped_;
};

}  // namespace skiff
