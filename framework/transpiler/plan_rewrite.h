// For plan passes that replace several instructions by one. PlanRewrite makes sure that the plan
// around a replacement computes the same as before; the pass itself answers for the values that the
// replacement computes. Most passes state their replacements as patterns: fusion.h.
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

// Instructions of a plan, by index, and the instructions that take their place.
struct Replacement {
  std::set<size_t> dropped;
  // By the dropped instruction where each of them stands.
  std::map<size_t, Instruction> made;
  // Of the gradient of an earlier replacement: the instructions that the earlier replacement
  // dropped. Scope variables must still hold the values that these instructions have read.
  std::set<size_t> forward;
  // From values that `dropped` writes and `made` doesn't to values that `made` writes: readers of
  // the former read the latter instead.
  std::map<ValueId, ValueId> instead;
};

// The uses of a plan as it is, and replacements, all made by one call of Apply. Each replacement is
// judged by the plan that earlier replacements leave.
//
// A reader of a shape only is no reader here: a plan knows the shape of a value that no instruction
// writes. The forward ops of a residual block are fused before their gradients, for example, and
// the gradient of the addition measures what has vanished. The exception is a value whose
// rows only a run knows: if such a reader stays, plan_rows.h may not find out how the rows vary. A
// plan with ragged feeds is then made for exact row counts.
class PlanRewrite : public PlanUses {
 public:
  PlanRewrite(const PassContext& context, Plan* plan);

  // Returns whether instruction i is an op of the type on which no kernel is forced, and no
  // replacement has dropped it.
  bool Is(size_t i, std::string_view type) const;
  // Returns whether the instruction is an elementwise_add of a vector to X along the last dim, one
  // number for each column; or the elementwise_add_grad of such an addition.
  bool AddsToRows(const Instruction& add) const;
  // Returns whether nobody but these instructions reads the data of a value: it is in the arena, no
  // fetch, and no checkpoint of the user's. True if there is no value.
  bool MayVanish(ValueId value, const std::set<size_t>& readers) const;
  // The same with readers of the shape only: then the rows of all that stays are known, too.
  bool MayVanishWithShape(ValueId value, const std::set<size_t>& readers) const;
  // Returns whether all that an instruction writes is in the arena.
  bool WritesArenaOnly(const Instruction& instruction) const;

  // Has Apply make the replacement and returns true, unless
  // - one of the instructions is no op, the user forces a kernel on it, or an earlier replacement
  //   drops it;
  // - a dropped instruction writes a value that no new instruction writes, and the value may not
  //   vanish, and `instead` names no other value for its readers. `instead` is refused if a reader,
  //   even of the shape alone, comes before the other value is written;
  // - (kernel) there is no kernel for a new instruction;
  // - (order) a new instruction stands before the writer of an input, or behind another reader of
  //   an output, or nobody writes an input any more;
  // - (scope) where a new instruction stands, a scope variable holds something else than where the
  //   dropped instructions read it, or somebody in between still reads or writes a variable that
  //   the new one writes;
  // - a replacement of the same instructions and others was refused because of kernel, order or
  //   scope: what belongs together isn't replaced in parts.
  // Throws an Error (kInvalidArgument) if a new instruction doesn't stand at a dropped one, or if
  // `instead` isn't as Replacement says.
  bool TryReplace(Replacement replacement);

  // Rewrites the plan and returns the number of new instructions. The uses no longer hold
  // afterwards.
  int64_t Apply();

 private:
  // An instruction of made_ that reads a value.
  struct MadeReader {
    size_t at = 0;
    bool reads_data = false;
  };

  bool MayBeReplaced(size_t i) const;
  bool MayDrop(const Replacement& replacement) const;
  bool MayReadInstead(ValueId value, const Replacement& replacement) const;
  bool MayStandAt(size_t at, const Instruction& made, const Replacement& replacement) const;
  bool MayMove(size_t from, size_t at, const Instruction& made,
               const std::set<size_t>& together) const;
  bool IsThere(ValueId value, size_t at, const Replacement& replacement) const;
  bool IsReadBefore(size_t at, ValueId value, const std::set<size_t>& together) const;
  bool WritesBetween(size_t begin, size_t end, const std::vector<ValueId>& values,
                     const std::set<size_t>& together) const;
  bool ReadsBetween(size_t begin, size_t end, const std::vector<ValueId>& values,
                    const std::set<size_t>& together) const;
  bool HasKernel(const Instruction& instruction) const;
  void Accept(Replacement replacement);

  const PassContext& context_;
  Plan& plan_;
  ValueTable<std::vector<size_t>> all_readers_;
  std::set<size_t> dropped_;
  std::vector<std::set<size_t>> refused_;
  std::map<size_t, Instruction> made_;
  std::map<ValueId, ValueId> instead_;
  // Of made_: the writer of each value, and the readers.
  std::map<ValueId, size_t> made_writer_;
  std::map<ValueId, std::vector<MadeReader>> made_readers_;
};

}  // namespace skiff
