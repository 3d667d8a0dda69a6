#include "framework/transpiler/batch_over_time_pass.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/plan_uses.h"
#include "framework/base/error.h"
#include "framework/plan/loop.h"

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

bool Has(const std::vector<std::string>& slots, const std::string& slot) {
  return std::ranges::find(slots, slot) != slots.end();
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
      Instruction instruction = body_.instructions[i];
      if (IsKnownBefore(uses, instruction)) {
        instruction.batching = Batching::kBefore;
        ++changes;
      }
      Instruction after = MakeAfter(uses, i, &instruction);
      if (instruction.op != nullptr) instructions.push_back(std::move(instruction));
      if (after.op == nullptr) continue;
      instructions.push_back(std::move(after));
      ++changes;
    }
    body_.instructions = std::move(instructions);
    return changes;
  }

 private:
  bool HasRule(const Instruction& instruction) const {
    if (instruction.kind != InstructionKind::kOp || !instruction.def->rows) return false;
    if (!context_.ForcedKernel(instruction.op->type).empty()) return false;
    const RowRule& rule = *instruction.def->rows;
    return !rule.applies || rule.applies(ContextOf(body_, instruction));
  }

  int64_t BytesOf(ValueId value) const { return value ? StorageBytes(body_[value]) : 0; }

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
    if (loop_.condition_input >= 0 || !HasRule(instruction)) return false;
    const RowRule& rule = *instruction.def->rows;
    if (!rule.sums.empty() || instruction.outputs.size() != 1) return false;
    const ValueId output = instruction.outputs[0];
    if (!output || !IsPlain(output)) return false;
    int64_t rows_bytes = BytesOf(output);
    int64_t shared_bytes = 0;
    int row_inputs = 0;
    for (const auto& [slot, value] : In(instruction, instruction.def->inputs)) {
      if (!value) continue;
      if (!Has(rule.inputs, slot)) {
        if (!IsTheSameInAll(value)) return false;
        shared_bytes += BytesOf(value);
        continue;
      }
      if (++row_inputs > 1 || !IsPlain(value) || !IsPart(uses, value)) return false;
      rows_bytes += BytesOf(value);
    }
    return row_inputs == 1 && rows_bytes <= shared_bytes;
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
    if (read.kind != InstructionKind::kOp || read.op->type != "read_from_array") return false;
    const ValueId array = read.InputIn("X");
    const bool is_outside = std::ranges::any_of(loop_.scope_values, [&](const LoopScopeValue& of) {
      return of.value == array && of.index >= 0 && !of.is_output;
    });
    return is_outside && !read.InputIn("X_W") && !written_.contains(body_[array].name) &&
           IsCounter(uses, read.InputIn("I"));
  }

  // Returns whether the value is a carried one that each iteration increments by 1.
  bool IsCounter(const PlanUses& uses, ValueId value) const {
    for (const LoopFetch& fetch : loop_.fetches) {
      if (fetch.kind != LoopFetch::Kind::kCarried) continue;
      const size_t writer = uses.WriterOf(fetch.value);
      if (writer == PlanUses::kNobody) continue;
      const Instruction& step = body_.instructions[writer];
      const ValueId feed = loop_.feeds[static_cast<size_t>(fetch.feed)].value;
      if (step.kind != InstructionKind::kOp || step.op->type != "increment") continue;
      if (step.InputIn("X") != feed || step.op->Attr<float>("step", 1.0f) != 1.0f) continue;
      if (value == feed || value == fetch.value) return true;
    }
    return false;
  }

  // ---- after

  // Returns an instruction that computes those sums of `instruction` that only leave the loop, and
  // leaves the other outputs to `instruction`. Without an op: nothing to do. If no outputs are
  // left, `instruction` has no op afterwards.
  Instruction MakeAfter(const PlanUses& uses, size_t index, Instruction* instruction) {
    if (!HasRule(*instruction)) return {};
    const RowRule& rule = *instruction->def->rows;
    SlotValues sums;
    SlotValues others;
    for (const auto& [slot, value] : In(*instruction, instruction->def->outputs)) {
      if (!value) continue;
      const bool is_sum = Has(rule.sums, slot) && OnlyLeaves(uses, value, index);
      (is_sum ? sums : others).emplace_back(slot, value);
    }
    if (sums.empty()) return {};
    const OpDef& def =
        rule.sums_by.empty() ? *instruction->def : context_.registry.Get(rule.sums_by);
    const SlotValues inputs = In(*instruction, def.inputs);
    if (!Pays(def, inputs, sums)) return {};
    Instruction after =
        MakeInstruction(&body_, def, *instruction, instruction->op->attrs, inputs, sums);
    after.batching = Batching::kAfter;
    if (others.empty()) {
      *instruction = {};
    } else {
      *instruction =
          MakeInstruction(&body_, *instruction->def, *instruction, instruction->op->attrs,
                          In(*instruction, instruction->def->inputs), others);
    }
    return after;
  }

  bool OnlyLeaves(const PlanUses& uses, ValueId value, size_t writer) const {
    const auto is_sum = [&](const LoopFetch& fetch) {
      return fetch.value == value && fetch.kind == LoopFetch::Kind::kSum && fetch.output >= 0;
    };
    const auto fetches = std::ranges::count(loop_.fetches, value, &LoopFetch::value);
    bool is_alone = true;
    for (const ValueId other : body_.ids()) is_alone = is_alone && body_[other].alias_of != value;
    return fetches == 1 && std::ranges::any_of(loop_.fetches, is_sum) && is_alone &&
           !body_[value].alias_of && body_[value].storage == Storage::kArena && IsPlain(value) &&
           uses.WriterOf(value) == writer &&
           std::ranges::all_of(uses.ReadersOf(value),
                               [&](size_t reader) { return reader >= body_.instructions.size(); });
  }

  bool Pays(const OpDef& def, const SlotValues& inputs, const SlotValues& sums) const {
    int64_t rows_bytes = 0;
    int64_t sums_bytes = 0;
    for (const SlotDef& slot : def.inputs) {
      const auto given = std::ranges::find(inputs, slot.name, &SlotValues::value_type::first);
      const bool is_given = given != inputs.end() && given->second;
      if (!is_given) {
        if (!slot.dispensable) return false;
        continue;
      }
      if (!Has(def.rows->inputs, slot.name)) continue;
      if (!IsPlain(given->second)) return false;
      rows_bytes += BytesOf(given->second);
    }
    for (const auto& [slot, value] : sums) sums_bytes += BytesOf(value);
    return rows_bytes <= sums_bytes;
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
    auto loop = std::make_shared<Loop>(*instruction.loop);
    const int64_t changes = BodyBatches(context, loop.get()).Apply();
    if (changes > 0) instruction.loop = std::move(loop);
    report.changes += changes;
  }
  report.summary = StrCat(report.changes, " ops of loops run for many iterations at once");
  return report;
}

}  // namespace skiff
