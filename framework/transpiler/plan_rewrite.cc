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

// Returns where the replacement writes the value; kNobody if it doesn't.
size_t PlaceOf(ValueId value, const Replacement& replacement) {
  for (const auto& [at, made] : replacement.made) {
    if (Contains(made.outputs, value)) return at;
  }
  return PlanUses::kNobody;
}

bool IsMade(ValueId value, const Replacement& replacement) {
  return PlaceOf(value, replacement) != PlanUses::kNobody;
}

// Whether one of the new instructions in the range, other than those in the places `besides`, does
// what `uses` asks.
template <typename Uses>
bool AnyMade(const std::map<size_t, Instruction>& made, const InstructionRange& range,
             const std::set<size_t>& besides, const Uses& uses) {
  return std::any_of(made.lower_bound(range.begin), made.end(), [&](const auto& at_made) {
    const auto& [at, instruction] = at_made;
    return at < range.end && !besides.contains(at) && uses(instruction);
  });
}

}  // namespace

PlanRewrite::PlanRewrite(const PassContext& context, Plan* plan)
    : PlanUses(*plan), context_(context), plan_(*plan), all_readers_(AllReaders(*plan)) {}

bool PlanRewrite::Is(size_t i, std::string_view type) const {
  return plan_.instructions[i].op->type == type && MayBeReplaced(i);
}

bool PlanRewrite::MayBeReplaced(size_t i) const {
  const Instruction& instruction = plan_.instructions[i];
  return instruction.kind == InstructionKind::kOp &&
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
  const auto made = made_readers_.find(value);
  return of.storage == Storage::kArena && !of.is_checkpoint &&
         std::ranges::includes(readers, ReadersOf(value)) &&
         (made == made_readers_.end() ||
          std::ranges::none_of(made->second, &MadeReader::reads_data));
}

bool PlanRewrite::MayVanishWithShape(ValueId value, const std::set<size_t>& readers) const {
  return MayVanish(value, readers) &&
         (!value ||
          (std::ranges::includes(readers, all_readers_[value]) && !made_readers_.contains(value)));
}

bool PlanRewrite::WritesArenaOnly(const Instruction& instruction) const {
  return std::ranges::all_of(instruction.outputs, [&](ValueId output) {
    return !output || plan_[output].storage == Storage::kArena;
  });
}

bool PlanRewrite::TryReplace(Replacement replacement) {
  for (const auto& [at, made] : replacement.made) {
    SKIFF_ENFORCE(replacement.dropped.contains(at), kInvalidArgument, made.Name(),
                  " would stand at instruction ", at, ", which isn't dropped");
  }
  for (const auto& [value, other] : replacement.instead) {
    SKIFF_ENFORCE(
        replacement.dropped.contains(WriterOf(value)) && IsMade(other, replacement),
        kInvalidArgument, "readers of ", TextOf(value), " would read ", TextOf(other),
        " instead; expected a value that a dropped instruction writes, and one that is made");
  }
  const bool may_be_replaced =
      std::ranges::all_of(replacement.dropped, [&](size_t i) { return MayBeReplaced(i); });
  const bool is_part = std::ranges::any_of(refused_, [&](const std::set<size_t>& refused) {
    return std::ranges::includes(refused, replacement.dropped);
  });
  if (!may_be_replaced || is_part || !MayDrop(replacement)) return false;
  for (const auto& [at, made] : replacement.made) {
    if (!MayStandAt(at, made, replacement) || !HasKernel(made)) {
      refused_.push_back(replacement.dropped);
      return false;
    }
  }
  Accept(std::move(replacement));
  return true;
}

void PlanRewrite::Accept(Replacement replacement) {
  for (const auto& [at, made] : replacement.made) {
    for (const ValueId output : made.outputs) {
      if (output) made_writer_[output] = at;
    }
    for (size_t k = 0; k < made.inputs.size(); ++k) {
      if (!made.inputs[k]) continue;
      made_readers_[made.inputs[k]].push_back({.at = at, .reads_data = made.reads_data[k]});
    }
  }
  dropped_.merge(replacement.dropped);
  made_.merge(replacement.made);
  instead_.merge(replacement.instead);
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
  // Even the shape of the other value isn't there before.
  const size_t at = PlaceOf(replacement.instead.at(value), replacement);
  const auto made = made_readers_.find(value);
  return of.storage == Storage::kArena && !of.is_checkpoint &&
         std::ranges::all_of(all_readers_[value],
                             [&](size_t i) {
                               const bool is_fetch = i == plan_.instructions.size();
                               return replacement.dropped.contains(i) || (i > at && !is_fetch);
                             }) &&
         (made == made_readers_.end() ||
          std::ranges::all_of(made->second, [&](const MadeReader& r) { return r.at > at; }));
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
  if (!value) return true;
  if (IsMade(value, replacement)) return PlaceOf(value, replacement) < at;
  const auto other = instead_.find(value);
  if (other != instead_.end()) value = other->second;
  const auto made = made_writer_.find(value);
  if (made != made_writer_.end()) return made->second < at;
  const size_t writer = WriterOf(value);
  return writer == kNobody ||
         (writer < at && !replacement.dropped.contains(writer) && !dropped_.contains(writer));
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
    return !WritesBetween(at, from, touched, together) &&
           !ReadsBetween(at, from, written, together);
  }
  return std::ranges::none_of(written,
                              [&](ValueId value) { return IsReadBefore(at, value, together); }) &&
         !WritesBetween(from + 1, at, touched, together);
}

// Whether somebody else reads the data of a value before `at`.
bool PlanRewrite::IsReadBefore(size_t at, ValueId value, const std::set<size_t>& together) const {
  const auto made = made_readers_.find(value);
  return std::ranges::any_of(ReadersOf(value),
                             [&](size_t i) { return i < at && !together.contains(i); }) ||
         (made != made_readers_.end() &&
          std::ranges::any_of(made->second,
                              [&](const MadeReader& r) { return r.reads_data && r.at < at; }));
}

// WritesScopeOf and ReadsScopeOf, with what accepted replacements have put there. The replacement
// of the forward instructions doesn't count: it does in its place what these instructions did in
// theirs.
bool PlanRewrite::WritesBetween(size_t begin, size_t end, const std::vector<ValueId>& values,
                                const std::set<size_t>& together) const {
  return WritesScopeOf(plan_, values, begin, end) ||
         AnyMade(made_, RunWith(plan_, begin, end), together,
                 [&](const Instruction& made) { return WritesScopeOf(plan_, values, made); });
}

bool PlanRewrite::ReadsBetween(size_t begin, size_t end, const std::vector<ValueId>& values,
                               const std::set<size_t>& together) const {
  return ReadsScopeOf(plan_, values, begin, end) ||
         AnyMade(made_, RunWith(plan_, begin, end), together,
                 [&](const Instruction& made) { return ReadsScopeOf(plan_, values, made); });
}

bool PlanRewrite::HasKernel(const Instruction& instruction) const {
  return context_.registry.CanRun(ContextOf(plan_, instruction));
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
