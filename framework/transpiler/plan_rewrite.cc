#include "framework/transpiler/plan_rewrite.h"

#include <algorithm>
#include <utility>

#include "framework/analysis/scope_use.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

bool Contains(const std::vector<ValueId>& values, ValueId value) {
  return std::ranges::find(values, value) != values.end();
}

bool IsMade(ValueId value, const Replacement& replacement) {
  return std::ranges::any_of(
      replacement.made, [&](const auto& made) { return Contains(made.second.outputs, value); });
}

}  // namespace

PlanRewrite::PlanRewrite(const PassContext& context, Plan* plan)
    : PlanUses(*plan), context_(context), plan_(*plan) {}

bool PlanRewrite::Is(size_t i, std::string_view type) const {
  const Instruction& instruction = plan_.instructions[i];
  return instruction.kind == InstructionKind::kOp && instruction.op->type == type &&
         context_.ForcedKernel(instruction.op->type).empty() && !dropped_.contains(i);
}

bool PlanRewrite::AddsToRows(const Instruction& add) const {
  const Shape& rows = ShapeOf(add.InputIn("X"));
  const Shape& bias = ShapeOf(add.InputIn("Y"));
  const int64_t axis = ContextOf(plan_, add).IntAttr("axis");
  return rows.rank() > 0 && bias.rank() == 1 && bias[0] == rows[rows.rank() - 1] &&
         (axis == -1 || axis == rows.rank() - 1);
}

bool PlanRewrite::MayVanish(ValueId value, const std::set<size_t>& readers) const {
  if (!value) return true;
  const PlanValue& of = plan_[value];
  return of.storage == Storage::kArena && !of.is_checkpoint &&
         std::ranges::all_of(ReadersOf(value), [&](size_t i) { return readers.contains(i); });
}

bool PlanRewrite::WritesArenaOnly(const Instruction& instruction) const {
  return std::ranges::all_of(instruction.outputs, [&](ValueId output) {
    return !output || plan_[output].storage == Storage::kArena;
  });
}

bool PlanRewrite::TryReplace(Replacement replacement) {
  const bool is_first =
      std::ranges::none_of(replacement.dropped, [&](size_t i) { return dropped_.contains(i); });
  const bool is_part = std::ranges::any_of(refused_, [&](const std::set<size_t>& refused) {
    return std::ranges::includes(refused, replacement.dropped);
  });
  if (!is_first || is_part || !MayDrop(replacement)) return false;
  for (const auto& [at, made] : replacement.made) {
    SKIFF_ENFORCE(replacement.dropped.contains(at), kInvalidArgument, made.Name(),
                  " would stand at instruction ", at, ", which isn't dropped");
    if (!MayStandAt(at, made, replacement) || !HasKernel(made)) {
      refused_.push_back(replacement.dropped);
      return false;
    }
  }
  dropped_.merge(replacement.dropped);
  made_.merge(replacement.made);
  instead_.merge(replacement.instead);
  return true;
}

bool PlanRewrite::MayDrop(const Replacement& replacement) const {
  for (const size_t i : replacement.dropped) {
    for (const ValueId output : plan_.instructions[i].outputs) {
      if (!output || IsMade(output, replacement)) continue;
      const bool may_go = replacement.instead.contains(output)
                              ? MayReadInstead(output, replacement)
                              : MayVanish(output, replacement.dropped);
      if (!may_go) return false;
    }
  }
  return true;
}

bool PlanRewrite::MayReadInstead(ValueId value, const Replacement& replacement) const {
  const PlanValue& of = plan_[value];
  if (of.storage != Storage::kArena || of.is_checkpoint || Contains(plan_.fetches, value)) {
    return false;
  }
  // Even the shape of the other value isn't there before.
  const size_t at = replacement.made.rbegin()->first;
  for (size_t i = 0; i < at; ++i) {
    if (!replacement.dropped.contains(i) && Contains(plan_.instructions[i].inputs, value)) {
      return false;
    }
  }
  return true;
}

bool PlanRewrite::MayStandAt(size_t at, const Instruction& made,
                             const Replacement& replacement) const {
  const auto is_there = [&](ValueId input) { return IsThere(input, at, replacement); };
  if (!std::ranges::all_of(made.inputs, is_there)) return false;
  std::set<size_t> together = replacement.dropped;
  together.insert(replacement.forward.begin(), replacement.forward.end());
  return std::ranges::all_of(together,
                             [&](size_t from) { return MayMove(from, at, made, together); });
}

// Whether a value may be read at `at`.
bool PlanRewrite::IsThere(ValueId value, size_t at, const Replacement& replacement) const {
  for (const auto& [place, made] : replacement.made) {
    if (Contains(made.outputs, value)) return !value || place < at;
  }
  const size_t writer = WriterOf(value);
  return writer == kNobody || (writer < at && !replacement.dropped.contains(writer));
}

// Whether what `made` takes over of instruction `from` may be read and written at `at`.
bool PlanRewrite::MayMove(size_t from, size_t at, const Instruction& made,
                          const std::set<size_t>& together) const {
  std::vector<ValueId> touched;
  std::vector<ValueId> written;
  for (const ValueId input : plan_.instructions[from].inputs) {
    // What one of the instructions hands to another stays inside of `made`.
    const bool is_inside = input && together.contains(WriterOf(input));
    if (Contains(made.inputs, input) && !is_inside) touched.push_back(input);
  }
  for (const ValueId output : plan_.instructions[from].outputs) {
    if (!output) continue;
    if (Contains(made.outputs, output)) written.push_back(output);
    if (Contains(made.outputs, output) || Contains(made.inputs, output)) touched.push_back(output);
  }
  if (from > at) {
    return !WritesScopeOf(plan_, touched, at, from) && !ReadsScopeOf(plan_, written, at, from);
  }
  const auto is_read_before = [&](ValueId value) {
    return std::ranges::any_of(ReadersOf(value),
                               [&](size_t i) { return i < at && !together.contains(i); });
  };
  return std::ranges::none_of(written, is_read_before) &&
         !WritesScopeOf(plan_, touched, from + 1, at);
}

bool PlanRewrite::HasKernel(const Instruction& instruction) const {
  return context_.registry.FindKernel(ContextOf(plan_, instruction)) != nullptr;
}

// All at once, so that the positions and uses that a pass works with stay valid until it has seen
// the whole plan.
int64_t PlanRewrite::Apply() {
  const auto made_count = static_cast<int64_t>(made_.size());
  std::vector<Instruction> rewritten;
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const auto made = made_.find(i);
    if (made != made_.end()) {
      rewritten.push_back(std::move(made->second));
    } else if (!dropped_.contains(i)) {
      rewritten.push_back(std::move(plan_.instructions[i]));
    }
  }
  for (Instruction& instruction : rewritten) {
    for (ValueId& input : instruction.inputs) {
      const auto other = instead_.find(input);
      if (other != instead_.end()) input = other->second;
    }
  }
  plan_.instructions = std::move(rewritten);
  return made_count;
}

}  // namespace skiff
