// For plan passes that replace several instructions by one. PlanRewrite makes sure that the plan
// around a replacement computes what it did before; what the replacement itself computes is the
// business of the pass. Most passes state their replacements as patterns: fusion.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "framework/analysis/plan_uses.h"
#include "framework/plan/plan.h"
#include "framework/transpiler/pass_context.h"

namespace skiff {

// Instructions of a plan, by their indices, and what takes their place.
struct Replacement {
  std::set<size_t> dropped;
  // By the dropped instruction where each of them stands.
  std::map<size_t, Instruction> made;
  // Of the gradient of an earlier replacement: what that one dropped. Scope variables must still
  // hold what these instructions have read.
  std::set<size_t> forward;
  // What readers of a value that isn't written any more read instead.
  std::map<ValueId, ValueId> instead;
};

// The uses of a plan as it is, and replacements that Apply then makes all at once.
class PlanRewrite : public PlanUses {
 public:
  PlanRewrite(const PassContext& context, Plan* plan);

  // Returns whether instruction i is an op of the type on which no kernel is forced, and no
  // replacement has dropped it.
  bool Is(size_t i, std::string_view type) const;
  // Returns whether an elementwise_add adds a vector to X along its last dim, one number for each
  // column; or whether an elementwise_add_grad is the gradient of one that does.
  bool AddsToRows(const Instruction& add) const;
  // Returns whether nobody but these instructions reads the data of a value: it is in the arena, no
  // fetch, and no checkpoint of the user's. True if there is no value.
  bool MayVanish(ValueId value, const std::set<size_t>& readers) const;
  // Returns whether all that an instruction writes is in the arena.
  bool WritesArenaOnly(const Instruction& instruction) const;

  // Has Apply make the replacement and returns true, unless
  // - an earlier replacement drops one of the instructions;
  // - a dropped instruction writes a value that no new one writes, and that may neither vanish nor
  //   be read as another one. `instead` is refused for a value that somebody needs before the new
  //   instructions have run, if only for its shape;
  // - there is no kernel for a new instruction;
  // - a new instruction stands before the writer of an input, or behind another reader of an
  //   output;
  // - where a new instruction stands, a scope variable holds something else than where the
  //   dropped instructions read it, or somebody in between still reads or writes a variable that
  //   the new one writes;
  // - a replacement of the same instructions and others was refused for one of the last three
  //   reasons: what belongs together isn't replaced in parts.
  bool TryReplace(Replacement replacement);

  // Rewrites the plan and returns the number of new instructions. The uses no longer hold
  // afterwards.
  int64_t Apply();

 private:
  bool MayDrop(const Replacement& replacement) const;
  bool MayReadInstead(ValueId value, const Replacement& replacement) const;
  bool MayStandAt(size_t at, const Instruction& made, const Replacement& replacement) const;
  bool MayMove(size_t from, size_t at, const Instruction& made,
               const std::set<size_t>& together) const;
  bool IsThere(ValueId value, size_t at, const Replacement& replacement) const;
  bool HasKernel(const Instruction& instruction) const;

  const PassContext& context_;
  Plan& plan_;
  std::set<size_t> dropped_;
  std::vector<std::set<size_t>> refused_;
  std::map<size_t, Instruction> made_;
  std::map<ValueId, ValueId> instead_;
};

}  // namespace skiff
