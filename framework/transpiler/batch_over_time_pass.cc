#include "framework/transpiler/batch_over_time_pass.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/analysis/plan_uses.h"
#include "framework/base/error.h"
#include "framework/plan/loop.h"
#include "framework/plan/row_batch.h"

namespace skiff {
namespace {

// The variables of an instruction in the slots of a definition, which may be that of another op.
SlotValues In(const Instruction& instruction, const std::vector<SlotDef>& slots) {
  SlotValues values;
  for (const SlotDef& slot : slots) {
    const bool is_input = instruction.def->FindInput(slot.name) != nullptr;
    const size_t count =
        (is_input ? instruction.op->Input(slot.name) : instruction.op->Output(slot.name)).size();
    for (size_t i = 0; i < count; ++i) {
      values.emplace_back(slot.name, is_input ? instruction.InputIn(slot.name, i)
                                              : instruction.OutputIn(slot.name, i));
    }
  }
  return values;
}

// Rewrites one body.
class BodyBatches {
 public:
  BodyBatches(const PassContext& context, Loop* loop)
      : context_(context), loop_(*loop), body_(loop->body) {
    for (const Instruction& instruction : body_.instructions) {
      for (const ValueId output : instruction.outputs) {
        if (output && body_[output].storage == Storage::kScope) written_.insert(body_[output].name);
      }
    }
  }

  int64_t Apply() {
    int64_t changes = 0;
    const PlanUses uses(body_);
    std::vector<Instruction> instructions;
    for (size_t i = 0; i < body_.instructions.size(); ++i) {
      const Instruction& instruction = body_.instructions[i];
      std::optional<Split> split = SplitSums(uses, i);
      if (!split) {
        instructions.push_back(instruction);
        if (!IsKnownBefore(uses, instruction)) continue;
        instructions.back().batching = Batching::kBefore;
        ++changes;
        continue;
      }
      if (split->rest) instructions.push_back(std::move(*split->rest));
      instructions.push_back(std::move(split->sums));
      ++changes;
    }
    body_.instructions = std::move(instructions);
    return changes;
  }

 private:
  // An instruction as two: the sums that run after the iterations, and what is left, if anything.
  struct Split {
    std::optional<Instruction> rest;
    Instruction sums;
  };

  bool HasRule(const Instruction& instruction) const {
    if (instruction.kind != InstructionKind::kOp || !instruction.def->rows) return false;
    if (!context_.ForcedKernel(instruction.op->type).empty()) return false;
    const RowRule& rule = *instruction.def->rows;
    return !rule.applies || rule.applies(ContextOf(body_, instruction));
  }

  // Returns whether the value is a plain tensor, whose rows mean nothing but themselves.
  bool IsPlain(ValueId value) const {
    const TensorMeta& meta = body_[value].meta;
    return meta.lod == nullptr && !meta.is_array && !meta.is_selected_rows() &&
           meta.shape.rank() > 0 && meta.layout.is_plain();
  }

  const LoopFeed* FeedOf(ValueId value) const {
    const auto feed = std::ranges::find(loop_.feeds, value, &LoopFeed::value);
    return feed == loop_.feeds.end() ? nullptr : &*feed;
  }

  // ---- before

  bool IsKnownBefore(const PlanUses& uses, const Instruction& instruction) const {
    if (!HasRule(instruction) || !instruction.def->rows->sums.empty()) return false;
    if (instruction.outputs.size() != 1 || !instruction.outputs[0]) return false;
    if (!IsPlain(instruction.outputs[0]) || !IsWorthwhile(instruction)) return false;
    const std::vector<ValueId> rows = RowInputs(instruction);
    return rows.size() == 1 && IsPlain(rows[0]) && IsPart(uses, rows[0]) &&
           ReadsTheSameInAll(instruction);
  }

  std::vector<ValueId> RowInputs(const Instruction& instruction) const {
    std::vector<ValueId> rows;
    for (const auto& [slot, value] : In(instruction, instruction.def->inputs)) {
      if (value && IsOneOf(slot, instruction.def->rows->inputs)) rows.push_back(value);
    }
    return rows;
  }

  // Returns whether what the op reads beside rows is the same in all iterations.
  bool ReadsTheSameInAll(const Instruction& instruction) const {
    return std::ranges::all_of(In(instruction, instruction.def->inputs), [&](const auto& input) {
      const auto& [slot, value] = input;
      return !value || IsOneOf(slot, instruction.def->rows->inputs) || IsTheSameInAll(value);
    });
  }

  // Returns whether the rows of two iterations fit into a batch. Where the rows vary, that of an
  // ordinary iteration, whatever is planned (MostBatchRows says why).
  bool IsWorthwhile(const Instruction& instruction) const {
    constexpr int64_t kOrdinaryRows = 16;
    const std::vector<ValueId> rows = RowInputs(instruction);
    if (rows.empty() || !IsPlain(rows[0])) return false;
    const int64_t count =
        loop_.joint_body != nullptr ? kOrdinaryRows : body_[rows[0]].meta.shape[0];
    return 2 * count <= MostBatchRows(body_, instruction);
  }

  bool IsTheSameInAll(ValueId value) const {
    const PlanValue& found = body_[value];
    if (found.storage == Storage::kScope) return !written_.contains(found.name);
    const LoopFeed* feed = FeedOf(value);
    return feed != nullptr && feed->kind == LoopFeed::Kind::kInvariant;
  }

  // Returns whether it is a part of a stack, or the element of an array at a counter.
  bool IsPart(const PlanUses& uses, ValueId value) const {
    const LoopFeed* feed = FeedOf(value);
    if (feed != nullptr) return feed->kind == LoopFeed::Kind::kPart;
    const size_t writer = uses.WriterOf(value);
    if (loop_.is_gradient || writer == PlanUses::kNobody) return false;
    const Instruction& read = body_.instructions[writer];
    if (read.kind != InstructionKind::kOp || !read.def->element) return false;
    const ElementRule& rule = *read.def->element;
    if (rule.applies && !rule.applies(*read.op)) return false;
    const ValueId array = read.InputIn(rule.array);
    const bool is_outside = std::ranges::any_of(loop_.scope_values, [&](const LoopScopeValue& of) {
      return of.value == array && of.index >= 0 && !of.is_output;
    });
    return is_outside && !written_.contains(body_[array].name) &&
           IsCounter(uses, read.InputIn(rule.index));
  }

  // Returns whether the value is a carried one to which each iteration adds 1.
  bool IsCounter(const PlanUses& uses, ValueId value) const {
    for (const LoopFetch& fetch : loop_.fetches) {
      if (fetch.kind != LoopFetch::Kind::kCarried) continue;
      const size_t writer = uses.WriterOf(fetch.value);
      if (writer == PlanUses::kNobody) continue;
      const Instruction& step = body_.instructions[writer];
      const ValueId feed = loop_.feeds[static_cast<size_t>(fetch.feed)].value;
      if (step.kind != InstructionKind::kOp || !step.def->counts_by) continue;
      if (step.inputs[0] != feed || step.def->counts_by(*step.op) != 1) continue;
      if (value == feed || value == fetch.value) return true;
    }
    return false;
  }

  // ---- after

  // Takes from the instruction those sums that only leave the loop.
  std::optional<Split> SplitSums(const PlanUses& uses, size_t index) {
    const Instruction& instruction = body_.instructions[index];
    if (!HasRule(instruction)) return std::nullopt;
    const RowRule& rule = *instruction.def->rows;
    SlotValues sums;
    SlotValues others;
    for (const auto& [slot, value] : In(instruction, instruction.def->outputs)) {
      if (!value) continue;
      const bool is_sum = IsOneOf(slot, rule.sums) && OnlyLeaves(uses, value, index);
      (is_sum ? sums : others).emplace_back(slot, value);
    }
    if (sums.empty()) return std::nullopt;
    const OpDef& def =
        rule.sums_by.empty() ? *instruction.def : context_.registry.Get(rule.sums_by);
    const SlotValues inputs = In(instruction, def.inputs);
    if (!HasInputs(def, inputs)) return std::nullopt;
    const AttributeMap& attrs = instruction.op->attrs;
    Split split{.rest = {}, .sums = MakeInstruction(&body_, def, instruction, attrs, inputs, sums)};
    split.sums.batching = Batching::kAfter;
    const bool are_rows_plain =
        std::ranges::all_of(RowInputs(split.sums), [&](ValueId value) { return IsPlain(value); });
    if (!HasRule(split.sums) || !are_rows_plain || !IsWorthwhile(split.sums) ||
        !ReadsTheSameInAll(split.sums)) {
      return std::nullopt;
    }
    if (!others.empty()) {
      split.rest = MakeInstruction(&body_, *instruction.def, instruction, attrs,
                                   In(instruction, instruction.def->inputs), others);
    }
    return split;
  }

  static bool HasInputs(const OpDef& def, const SlotValues& inputs) {
    return std::ranges::all_of(def.inputs, [&](const SlotDef& slot) {
      const auto given = std::ranges::find(inputs, slot.name, &SlotValues::value_type::first);
      return slot.dispensable || (given != inputs.end() && given->second);
    });
  }

  bool OnlyLeaves(const PlanUses& uses, ValueId value, size_t writer) const {
    const auto is_sum = [&](const LoopFetch& fetch) {
      return fetch.value == value && fetch.kind == LoopFetch::Kind::kSum && fetch.output >= 0;
    };
    const auto fetches = std::ranges::count(loop_.fetches, value, &LoopFetch::value);
    bool is_exclusive = true;
    for (const ValueId other : body_.ids())
      is_exclusive = is_exclusive && body_[other].alias_of != value;
    return fetches == 1 && std::ranges::any_of(loop_.fetches, is_sum) && is_exclusive &&
           !body_[value].alias_of && body_[value].storage == Storage::kArena && IsPlain(value) &&
           uses.WriterOf(value) == writer &&
           std::ranges::all_of(uses.ReadersOf(value),
                               [&](size_t reader) { return reader >= body_.instructions.size(); });
  }

  const PassContext& context_;
  const Loop& loop_;
  Plan& body_;
  std::set<std::string> written_;  // variables of the scope, by the body
};

}  // namespace

PassReport BatchOverTimePass::Apply(const PassContext& context, Plan* plan) const {
  PassReport report;
  for (Instruction& instruction : plan->instructions) {
    if (instruction.kind != InstructionKind::kLoop) continue;
    // Branches, and loops of which only one iteration is there, have no other rows to wait for.
    if (instruction.loop->condition_input >= 0) continue;
    if (instruction.loop->iterations == 0 || instruction.loop->iterations == 1) continue;
    // The host gathers rows.
    if (!instruction.loop->body.place.is_cpu()) continue;
    auto loop = std::make_shared<Loop>(*instruction.loop);
    const int64_t changes = BodyBatches(context, loop.get()).Apply();
    if (changes > 0) instruction.loop = std::move(loop);
    report.changes += changes;
  }
  report.summary = StrCat(report.changes, " ops of loops run for many iterations at once");
  return report;
}

}  // namespace skiff
