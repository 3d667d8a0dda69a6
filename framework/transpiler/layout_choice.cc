#include "framework/transpiler/layout_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/analysis/scope_use.h"
#include "framework/transpiler/min_cut.h"
#include "framework/tuning/kernel_tuner.h"

namespace skiff {
namespace {

const PlanValue& ValueOf(const Plan& plan, int32_t index) {
  return plan.values[static_cast<size_t>(index)];
}

std::vector<TensorMeta> PlainMetas(const Plan& plan, const std::vector<int32_t>& values) {
  std::vector<TensorMeta> metas;
  for (int32_t value : values) {
    metas.push_back(value < 0 ? TensorMeta{} : ValueOf(plan, value).meta);
    metas.back().layout = Layout::Plain();
  }
  return metas;
}

// ---- what can be blocked

class FormFinder {
 public:
  FormFinder(const OpRegistry& registry, const Plan& plan, Layout blocked)
      : registry_(registry), plan_(plan), blocked_(blocked) {}

  std::optional<BlockedForm> FormOf(const Instruction& instruction) const {
    if (instruction.kind != InstructionKind::kOp) return {};
    const LayoutRule rule = instruction.def->layout_rule;
    if (rule == LayoutRule::kPlain) return {};
    const Op& op = *instruction.op;
    const auto inputs = LayoutArguments(
        instruction, instruction.def->inputs,
        [&](const std::string& slot) { return op.Input(slot).size(); }, instruction.inputs);
    const auto outputs = LayoutArguments(
        instruction, instruction.def->outputs,
        [&](const std::string& slot) { return op.Output(slot).size(); }, instruction.outputs);
    const bool fits = rule == LayoutRule::kChannelBlocked
                          ? HasSomethingToBlock(instruction, inputs, outputs)
                          : CanBlockAll(instruction, inputs, outputs);
    if (!fits) return {};

    BlockedForm form{PlainMetas(plan_, instruction.inputs), PlainMetas(plan_, instruction.outputs)};
    const OpContext plain(op, *instruction.def, form.inputs, form.outputs, plan_.place);
    for (size_t i : inputs) {
      if (CanBlock(instruction.inputs[i])) form.inputs[i].layout = blocked_;
    }
    for (size_t i : outputs) {
      if (CanBlockOutput(instruction.outputs[i])) form.outputs[i].layout = blocked_;
    }
    const OpContext context(op, *instruction.def, form.inputs, form.outputs, plan_.place);
    if (registry_.FindKernel(context) == nullptr || ForcedKernelIsForPlain(plain, context)) {
      return {};
    }
    return form;
  }

 private:
  bool CanBlock(int32_t index) const {
    const TensorMeta& meta = ValueOf(plan_, index).meta;
    return meta.dtype == DType::kFloat32 && meta.layout.is_plain() && meta.shape.rank() == 4 &&
           meta.shape[1] >= blocked_.channel_block && meta.shape.element_count() > 0;
  }
  bool CanBlockOutput(int32_t index) const {
    return CanBlock(index) && ValueOf(plan_, index).storage == Storage::kArena;
  }

  // Indices into the instruction's inputs (outputs) whose slot may be blocked.
  template <typename Count>
  std::vector<size_t> LayoutArguments(const Instruction& instruction,
                                      const std::vector<SlotDef>& slots, const Count& count,
                                      const std::vector<int32_t>& values) const {
    std::vector<size_t> arguments;
    size_t index = 0;
    for (const SlotDef& slot : slots) {
      const bool listed = std::ranges::count(instruction.def->layout_slots, slot.name) > 0;
      for (size_t i = 0; i < count(slot.name); ++i, ++index) {
        if (listed && values[index] >= 0) arguments.push_back(index);
      }
    }
    return arguments;
  }

  bool HasSomethingToBlock(const Instruction& instruction, const std::vector<size_t>& inputs,
                           const std::vector<size_t>& outputs) const {
    const auto blockable = [&](const std::vector<int32_t>& values,
                               const std::vector<size_t>& picked) {
      return std::ranges::any_of(picked, [&](size_t i) { return CanBlock(values[i]); });
    };
    return blockable(instruction.inputs, inputs) || blockable(instruction.outputs, outputs);
  }

  // An op without a preference runs blocked only if all its tensors have one shape.
  bool CanBlockAll(const Instruction& instruction, const std::vector<size_t>& inputs,
                   const std::vector<size_t>& outputs) const {
    if (!instruction.def->zero_preserving || inputs.empty() || outputs.empty()) return false;
    const Shape& shape = ValueOf(plan_, instruction.inputs[inputs[0]]).meta.shape;
    const auto in = [&](size_t i) {
      const int32_t value = instruction.inputs[i];
      return ValueOf(plan_, value).meta.shape == shape && CanBlock(value);
    };
    const auto out = [&](size_t i) {
      const int32_t value = instruction.outputs[i];
      return ValueOf(plan_, value).meta.shape == shape && CanBlockOutput(value);
    };
    return std::ranges::all_of(inputs, in) && std::ranges::all_of(outputs, out);
  }

  // Whether a kernel is forced that takes the op's shapes, but not the layouts of `blocked`.
  bool ForcedKernelIsForPlain(const OpContext& plain, const OpContext& blocked) const {
    const std::string_view forced = plan_.ForcedKernel(plain.op().type);
    return !forced.empty() && registry_.FindKernel(blocked, forced) == nullptr &&
           registry_.FindKernel(plain, forced) != nullptr;
  }

  const OpRegistry& registry_;
  const Plan& plan_;
  const Layout blocked_;
};

// ---- by time

// A value that may lie in two ways, with those who read it.
struct ReadValue {
  int32_t value = -1;
  int32_t writer = -1;           // the instruction whose label it follows; -1: plain
  std::vector<int32_t> readers;  // instructions that want it as their label says; -1: plain
  double seconds_to_plain = 0;
  double seconds_to_blocked = 0;
};

// By value, who writes and reads its data; empty for those that lie plain whatever is chosen.
std::vector<ReadValue> ReadsOf(const Plan& plan, const BlockedForms& forms) {
  std::vector<ReadValue> reads(plan.values.size());
  for (size_t i = 0; i < reads.size(); ++i) reads[i].value = static_cast<int32_t>(i);
  const auto read = [&](int32_t value) -> ReadValue& { return reads[static_cast<size_t>(value)]; };
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    const std::optional<BlockedForm>& form = forms[i];
    const auto index = static_cast<int32_t>(i);
    for (size_t j = 0; j < instruction.inputs.size(); ++j) {
      if (instruction.inputs[j] < 0 || !instruction.reads_data[j]) continue;
      const bool follows = form && !form->inputs[j].layout.is_plain();
      read(instruction.inputs[j]).readers.push_back(follows ? index : -1);
    }
    for (size_t j = 0; j < instruction.outputs.size(); ++j) {
      if (instruction.outputs[j] < 0 || !form || form->outputs[j].layout.is_plain()) continue;
      read(instruction.outputs[j]).writer = index;
    }
  }
  for (int32_t fetch : plan.fetches) read(fetch).readers.push_back(-1);
  std::erase_if(reads, [](const ReadValue& value) {
    const bool is_plain =
        value.writer < 0 &&
        std::ranges::all_of(value.readers, [](int32_t reader) { return reader < 0; });
    return is_plain || value.readers.empty();
  });
  return reads;
}

// Of an op that can't be timed both are 0.
struct OpSeconds {
  double plain = 0;
  double blocked = 0;
  bool can_be_plain = true;
};

class TimedChoice {
 public:
  // Ops with a form have a choice.
  TimedChoice(const OpRegistry& registry, const Plan& plan, const BlockedForms& forms,
              Layout blocked)
      : plan_(plan), constant_(plan), ops_(forms.size()), reads_(ReadsOf(plan, forms)) {
    for (size_t i = 0; i < ops_.size(); ++i) {
      has_choice_.push_back(forms[i].has_value());
      if (forms[i]) TimeOp(registry, *forms[i], plan.instructions[i], &ops_[i]);
    }
    for (ReadValue& read : reads_) TimeCopies(blocked, &read);
  }

  TimedLayouts Choose() const {
    const std::vector<bool> cheapest = is_timed_ ? SmallestCut() : has_choice_;
    return {.is_blocked = cheapest,
            .seconds = SecondsOf(cheapest),
            .seconds_by_rule = SecondsOf(has_choice_)};
  }

 private:
  void TimeOp(const OpRegistry& registry, const BlockedForm& form, const Instruction& instruction,
              OpSeconds* op) const {
    const OpContext plain(*instruction.op, *instruction.def, PlainMetas(plan_, instruction.inputs),
                          PlainMetas(plan_, instruction.outputs), plan_.place);
    op->can_be_plain =
        plan_.ForcedKernel(instruction.op->type).empty() && registry.FindKernel(plain) != nullptr;
    if (!op->can_be_plain) return;
    std::vector<bool> is_constant = constant_.Of(instruction);
    const std::optional<double> in_plain =
        plan_.tuner->Seconds({.context = plain, .is_constant = is_constant});
    const OpContext blocked(*instruction.op, *instruction.def, form.inputs, form.outputs,
                            plan_.place);
    // What is copied to blocks in each step isn't constant.
    for (size_t i = 0; i < form.inputs.size(); ++i) {
      if (!form.inputs[i].layout.is_plain()) is_constant[i] = false;
    }
    const std::optional<double> in_blocked =
        plan_.tuner->Seconds({.context = blocked, .is_constant = is_constant});
    if (in_plain && in_blocked) {
      op->plain = *in_plain;
      op->blocked = *in_blocked;
    } else {
      // One without a preference goes with its neighbours.
      op->can_be_plain = instruction.def->layout_rule == LayoutRule::kSame;
    }
  }

  // Both ways, but for what can't happen: whoever is plain whatever is chosen reads no blocks.
  void TimeCopies(Layout blocked, ReadValue* read) {
    TensorMeta meta = ValueOf(plan_, read->value).meta;
    meta.layout = Layout::Plain();
    std::optional<double> to_blocked = 0;
    if (std::ranges::any_of(read->readers, [](int32_t reader) { return reader >= 0; })) {
      to_blocked = plan_.tuner->SecondsOfCopy(meta, blocked);
    }
    meta.layout = blocked;
    std::optional<double> to_plain = 0;
    if (read->writer >= 0) to_plain = plan_.tuner->SecondsOfCopy(meta, Layout::Plain());
    is_timed_ = is_timed_ && to_blocked && to_plain;
    read->seconds_to_blocked = to_blocked.value_or(0);
    read->seconds_to_plain = to_plain.value_or(0);
  }

  // Nanoseconds: the same sums wherever they are taken.
  static int64_t Cost(double seconds) { return std::llround(seconds * 1e9); }

  std::vector<bool> SmallestCut() const {
    MinCut cut;
    for (size_t i = 0; i < ops_.size(); ++i) {
      const OpSeconds& op = ops_[i];
      cut.AddNode(
          has_choice_[i] ? Cost(op.blocked) : MinCut::kForbidden,
          op.can_be_plain ? Cost(KernelTuner::kNoiseFactor * op.plain) : MinCut::kForbidden);
    }
    const int plain = cut.AddNode(MinCut::kForbidden, 0);
    for (const ReadValue& read : reads_) AddCopies(read, plain, &cut);
    for (const auto& [op, other] : RepeatedWork()) {
      cut.AddPairCost(op, other, MinCut::kForbidden);
      cut.AddPairCost(other, op, MinCut::kForbidden);
    }
    std::vector<bool> labels = cut.Solve();
    labels.resize(ops_.size());
    return labels;
  }

  // An op that reads what another one keeps for it alone (its gradient, its replay) repeats parts
  // of that one's work: on other layouts it might come to other last bits.
  std::vector<std::pair<int, int>> RepeatedWork() const {
    std::vector<int> keeper(plan_.values.size(), -1);
    std::vector<std::pair<int, int>> pairs;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!has_choice_[i]) continue;
      const Instruction& instruction = plan_.instructions[i];
      for (const int32_t input : instruction.inputs) {
        const int of = input < 0 ? -1 : keeper[static_cast<size_t>(input)];
        if (of >= 0) pairs.emplace_back(of, static_cast<int>(i));
      }
      for (const SlotDef& slot : instruction.def->outputs) {
        const int32_t output = slot.intermediate ? instruction.OutputIn(slot.name) : -1;
        if (output >= 0) keeper[static_cast<size_t>(output)] = static_cast<int>(i);
      }
    }
    return pairs;
  }

  // One copy serves all readers that want it: a node says whether there is none (to plain), or one
  // (to blocked).
  static void AddCopies(const ReadValue& read, int plain, MinCut* cut) {
    const auto node = [plain](int32_t instruction) {
      return instruction < 0 ? plain : instruction;
    };
    const int all_blocked = cut->AddNode(0, 0);
    const int any_blocked = cut->AddNode(0, 0);
    for (const int32_t reader : read.readers) {
      cut->AddPairCost(all_blocked, node(reader), MinCut::kForbidden);
      cut->AddPairCost(node(reader), any_blocked, MinCut::kForbidden);
    }
    cut->AddPairCost(node(read.writer), all_blocked, Cost(read.seconds_to_plain));
    cut->AddPairCost(any_blocked, node(read.writer), Cost(read.seconds_to_blocked));
  }

  double SecondsOf(const std::vector<bool>& labels) const {
    const auto is_blocked = [&](int32_t instruction) {
      return instruction >= 0 && labels[static_cast<size_t>(instruction)];
    };
    double seconds = 0;
    for (size_t i = 0; i < ops_.size(); ++i) seconds += labels[i] ? ops_[i].blocked : ops_[i].plain;
    for (const ReadValue& read : reads_) {
      if (!std::ranges::all_of(read.readers, is_blocked) && is_blocked(read.writer)) {
        seconds += read.seconds_to_plain;
      }
      if (std::ranges::any_of(read.readers, is_blocked) && !is_blocked(read.writer)) {
        seconds += read.seconds_to_blocked;
      }
    }
    return seconds;
  }

  const Plan& plan_;
  const ConstantInputs constant_;
  std::vector<bool> has_choice_;
  bool is_timed_ = true;  // the copies are
  std::vector<OpSeconds> ops_;
  std::vector<ReadValue> reads_;
};

}  // namespace

BlockedForms FindBlockedForms(const OpRegistry& registry, const Plan& plan, Layout blocked) {
  const FormFinder finder(registry, plan, blocked);
  BlockedForms forms;
  for (const Instruction& instruction : plan.instructions) {
    forms.push_back(finder.FormOf(instruction));
  }
  return forms;
}

std::vector<bool> LayoutsByRule(const Plan& plan, const BlockedForms& forms) {
  std::vector<bool> is_blocked(plan.instructions.size());
  std::vector<bool> comes_blocked(plan.values.size());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    const std::optional<BlockedForm>& form = forms[i];
    if (!form) continue;
    bool wanted = instruction.def->layout_rule == LayoutRule::kChannelBlocked;
    for (size_t j = 0; j < instruction.inputs.size(); ++j) {
      if (form->inputs[j].layout.is_plain()) continue;
      wanted = wanted || comes_blocked[static_cast<size_t>(instruction.inputs[j])];
    }
    if (!wanted) continue;
    is_blocked[i] = true;
    for (size_t j = 0; j < instruction.outputs.size(); ++j) {
      if (form->outputs[j].layout.is_plain()) continue;
      comes_blocked[static_cast<size_t>(instruction.outputs[j])] = true;
    }
  }
  return is_blocked;
}

TimedLayouts LayoutsByTime(const OpRegistry& registry, const Plan& plan, const BlockedForms& forms,
                           const std::vector<bool>& by_rule, Layout blocked) {
  BlockedForms choices = forms;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!by_rule[i]) choices[i].reset();
  }
  return TimedChoice(registry, plan, choices, blocked).Choose();
}

}  // namespace skiff
