// First asks for each instruction whether it could run blocked: its layout rule, the ranks, dtypes
// and channels of its tensors, and whether a kernel takes the blocked arguments. Then one pass in
// order chooses: ops that gain from blocks (convolution, pooling, batch norm) always, ops that
// don't care only if their input comes blocked, so that no copy is made for them alone.
#include "framework/transpiler/layout_choice.h"

#include <algorithm>
#include <utility>

namespace skiff {
namespace {

const PlanValue& ValueOf(const Plan& plan, ValueId value) { return plan[value]; }

std::vector<TensorMeta> PlainMetas(const Plan& plan, const std::vector<ValueId>& values) {
  std::vector<TensorMeta> metas;
  for (ValueId value : values) {
    metas.push_back(value ? ValueOf(plan, value).meta : TensorMeta{});
    metas.back().layout = Layout::Plain();
  }
  return metas;
}

class FormFinder {
 public:
  FormFinder(const PassContext& context, const Plan& plan, Layout blocked)
      : context_(context), plan_(plan), blocked_(blocked) {}

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
    // A kernel that the user forces wins over the layout.
    if (context_.registry.FindKernel(context) == nullptr ||
        ForcedKernelIsForPlain(plain, context)) {
      return {};
    }
    return form;
  }

 private:
  bool CanBlock(ValueId value) const {
    const TensorMeta& meta = ValueOf(plan_, value).meta;
    return (meta.dtype == DType::kFloat32 || IsHalf(meta.dtype)) && meta.layout.is_plain() &&
           meta.shape.rank() == 4 && meta.shape[1] >= blocked_.channel_block &&
           meta.shape.element_count() > 0;
  }
  bool CanBlockOutput(ValueId value) const {
    return CanBlock(value) && ValueOf(plan_, value).storage == Storage::kArena;
  }

  // Returns the indices of the instruction's inputs (outputs) whose slots may be blocked.
  template <typename Count>
  std::vector<size_t> LayoutArguments(const Instruction& instruction,
                                      const std::vector<SlotDef>& slots, const Count& count,
                                      const std::vector<ValueId>& values) const {
    std::vector<size_t> arguments;
    size_t index = 0;
    for (const SlotDef& slot : slots) {
      const bool listed = IsOneOf(slot.name, instruction.def->layout_slots);
      for (size_t i = 0; i < count(slot.name); ++i, ++index) {
        if (listed && values[index]) arguments.push_back(index);
      }
    }
    return arguments;
  }

  bool HasSomethingToBlock(const Instruction& instruction, const std::vector<size_t>& inputs,
                           const std::vector<size_t>& outputs) const {
    const auto blockable = [&](const std::vector<ValueId>& values,
                               const std::vector<size_t>& picked) {
      return std::ranges::any_of(picked, [&](size_t i) { return CanBlock(values[i]); });
    };
    return blockable(instruction.inputs, inputs) || blockable(instruction.outputs, outputs);
  }

  // An op without a preference runs blocked only if all its tensors have one shape. Its kernel then
  // runs over the padded storage as if that was one long array, which is right only if it maps the
  // zeros of the padding to zeros.
  bool CanBlockAll(const Instruction& instruction, const std::vector<size_t>& inputs,
                   const std::vector<size_t>& outputs) const {
    if (!instruction.def->zero_preserving || inputs.empty() || outputs.empty()) return false;
    const Shape& shape = ValueOf(plan_, instruction.inputs[inputs[0]]).meta.shape;
    const auto in = [&](size_t i) {
      const ValueId value = instruction.inputs[i];
      return ValueOf(plan_, value).meta.shape == shape && CanBlock(value);
    };
    const auto out = [&](size_t i) {
      const ValueId value = instruction.outputs[i];
      return ValueOf(plan_, value).meta.shape == shape && CanBlockOutput(value);
    };
    return std::ranges::all_of(inputs, in) && std::ranges::all_of(outputs, out);
  }

  // Whether a kernel is forced that takes the op's shapes, but not the layouts of `blocked`.
  bool ForcedKernelIsForPlain(const OpContext& plain, const OpContext& blocked) const {
    const std::string_view forced = context_.ForcedKernel(plain.op().type);
    return !forced.empty() && context_.registry.FindKernel(blocked, forced) == nullptr &&
           context_.registry.FindKernel(plain, forced) != nullptr;
  }

  const PassContext& context_;
  const Plan& plan_;
  const Layout blocked_;
};

}  // namespace

BlockedForms FindBlockedForms(const PassContext& context, const Plan& plan, Layout blocked) {
  const FormFinder finder(context, plan, blocked);
  BlockedForms forms;
  for (const Instruction& instruction : plan.instructions) {
    forms.push_back(finder.FormOf(instruction));
  }
  return forms;
}

std::vector<bool> ChooseBlocked(const Plan& plan, const BlockedForms& forms) {
  std::vector<bool> is_blocked(plan.instructions.size());
  ValueTable<bool> comes_blocked(plan.values.size(), false);
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    const std::optional<BlockedForm>& form = forms[i];
    if (!form) continue;
    bool wanted = instruction.def->layout_rule == LayoutRule::kChannelBlocked;
    for (size_t j = 0; j < instruction.inputs.size(); ++j) {
      if (form->inputs[j].layout.is_plain()) continue;
      wanted = wanted || comes_blocked[instruction.inputs[j]];
    }
    if (!wanted) continue;
    is_blocked[i] = true;
    for (size_t j = 0; j < instruction.outputs.size(); ++j) {
      if (form->outputs[j].layout.is_plain()) continue;
      comes_blocked[instruction.outputs[j]] = true;
    }
  }
  return is_blocked;
}

}  // namespace skiff
