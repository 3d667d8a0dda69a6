// For plan passes that replace several instructions by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>

#include "framework/analysis/plan_uses.h"
#include "framework/plan/plan.h"
#include "framework/transpiler/pass_context.h"

namespace skiff {

// The uses of a plan as it is, and replacements that Apply then makes all at once.
class PlanRewrite : public PlanUses {
 public:
  PlanRewrite(const PassContext& context, Plan* plan);

  // Returns whether instruction i is an op of the type on which no kernel is forced.
  bool Is(size_t i, std::string_view type) const;
  // Returns whether an elementwise_add adds a vector to X along its last dim, one number for each
  // column; or whether an elementwise_add_grad is the gradient of one that does.
  bool AddsToRows(const Instruction& add) const;
  // Returns whether there is a kernel for the instruction.
  bool HasKernel(const Instruction& instruction) const;

  // Has Apply put `made` in the place of instruction `at`.
  void Replace(size_t at, Instruction made);
  // Has Apply remove instruction i.
  void Drop(size_t i) { dropped_.insert(i); }
  // Rewrites the plan and returns the number of replacements. The uses no longer hold afterwards.
  int64_t Apply();

 private:
  const PassContext& context_;
  Plan& plan_;
  std::map<size_t, Instruction> made_;  // by the instruction that they replace
  std::set<size_t> dropped_;
};

}  // namespace skiff
