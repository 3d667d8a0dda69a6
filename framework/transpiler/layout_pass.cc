// Rewrites the plan in one pass, in order. A blocked instruction gives its outputs the blocked
// layout; each input that isn't in the layout that an instruction wants is replaced by its twin, a
// copy in that layout. A value is written in one layout only, and its twins are made right before
// their first readers.
#include "framework/transpiler/layout_pass.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/transpiler/layout_choice.h"

namespace skiff {
namespace {

// Gives the ops of a plan the layouts that were chosen, with copies between them.
class LayoutAssignment {
 public:
  explicit LayoutAssignment(Plan* plan) : plan_(*plan) {}

  void Run(const BlockedForms& forms, const std::vector<bool>& is_blocked) {
    for (size_t i = 0; i < forms.size(); ++i) {
      Instruction& instruction = plan_.instructions[i];
      if (is_blocked[i]) {
        Block(instruction, *forms[i]);
      } else {
        MakePlain(instruction);
      }
      rewritten_.push_back(std::move(instruction));
    }
    plan_.instructions = std::move(rewritten_);
    rewritten_.clear();
    MakeFetchesPlain();
  }

  int64_t blocked_values() const { return blocked_values_; }
  int64_t reorders() const { return reorders_; }

 private:
  PlanValue& Value(ValueId value) { return plan_[value]; }

  void Block(Instruction& instruction, const BlockedForm& form) {
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      // An input of which only the shape is read may stay in any layout.
      if (instruction.inputs[i] && instruction.reads_data[i]) {
        instruction.inputs[i] = InLayout(instruction.inputs[i], form.inputs[i].layout, instruction);
      }
    }
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      if (form.outputs[i].layout.is_plain()) continue;
      Value(instruction.outputs[i]).meta.layout = form.outputs[i].layout;
      ++blocked_values_;
    }
  }

  void MakePlain(Instruction& instruction) {
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      ValueId& input = instruction.inputs[i];
      if (input && instruction.reads_data[i]) {
        input = InLayout(input, Layout::Plain(), instruction);
      }
    }
  }

  void MakeFetchesPlain() {
    for (ValueId& fetch : plan_.fetches) {
      if (!Value(fetch).meta.layout.is_blocked()) continue;
      // Attributes the copy to the last instruction of the plan: a copy needs an op for its errors.
      const Instruction last = plan_.instructions.back();
      fetch = InLayout(fetch, Layout::Plain(), last);
    }
    std::ranges::move(rewritten_, std::back_inserter(plan_.instructions));
  }

  // Returns the value, or its twin in `layout`. Makes a copy only for the first reader that needs
  // that layout. Selected rows have one layout only.
  ValueId InLayout(ValueId value, Layout layout, const Instruction& reader) {
    if (Value(value).meta.layout == layout || Value(value).meta.is_selected_rows()) return value;
    const auto [it, is_new] = twins_.try_emplace({value, layout.channel_block});
    if (!is_new) return it->second;
    PlanValue twin = Value(value);
    twin.meta.layout = layout;
    twin.meta.persistable = false;
    twin.storage = Storage::kArena;
    twin.alias_of = {};
    const ValueId made = plan_.values.Add(std::move(twin));
    it->second = made;
    // The way back is free: the original is still there.
    twins_[{made, Value(value).meta.layout.channel_block}] = value;
    Instruction reorder;
    reorder.kind = InstructionKind::kCopy;
    reorder.op = reader.op;
    reorder.def = reader.def;
    reorder.block = reader.block;
    reorder.position = reader.position;
    reorder.inputs = {value};
    reorder.outputs = {made};
    reorder.reads_data = {true};
    rewritten_.push_back(std::move(reorder));
    ++reorders_;
    return made;
  }

  Plan& plan_;
  std::vector<Instruction> rewritten_;
  std::map<std::pair<ValueId, int32_t>, ValueId> twins_;  // {value, channel block} -> value
  int64_t blocked_values_ = 0;
  int64_t reorders_ = 0;
};

}  // namespace

PassReport LayoutPass::Apply(const PassContext& context, Plan* plan) const {
  const Layout blocked = Layout::Blocked(PreferredChannelBlock());
  if (!plan->place.is_cpu() || blocked.is_plain()) {
    return {.pass = {}, .changes = 0, .summary = "no blocked layouts on this place"};
  }
  const BlockedForms forms = FindBlockedForms(context, *plan, blocked);
  LayoutAssignment assignment(plan);
  assignment.Run(forms, ChooseBlocked(*plan, forms));
  return {.pass = {},
          .changes = assignment.blocked_values(),
          .summary = StrCat(assignment.blocked_values(), " values in ", blocked, ", ",
                            assignment.reorders(), " reorders")};
}

}  // namespace skiff
