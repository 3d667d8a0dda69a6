#include "framework/transpiler/layout_pass.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

class LayoutAssignment {
 public:
  LayoutAssignment(const OpRegistry& registry, Plan* plan, int32_t block)
      : registry_(registry), plan_(*plan), blocked_(Layout::Blocked(block)) {}

  PassReport Run() {
    for (Instruction& instruction : plan_.instructions) {
      if (!TryBlocked(instruction)) MakePlain(instruction);
      rewritten_.push_back(std::move(instruction));
    }
    plan_.instructions = std::move(rewritten_);
    rewritten_.clear();
    MakeFetchesPlain();
    return {
        .pass = {},
        .changes = blocked_values_,
        .summary = StrCat(blocked_values_, " values in ", blocked_, ", ", reorders_, " reorders")};
  }

 private:
  PlanValue& Value(int32_t index) { return plan_.values[static_cast<size_t>(index)]; }

  bool CanBlock(int32_t index) {
    const TensorMeta& meta = Value(index).meta;
    return meta.dtype == DType::kFloat32 && meta.shape.rank() == 4 &&
           meta.shape[1] >= blocked_.channel_block && meta.shape.element_count() > 0;
  }

  // Indices into the instruction's inputs (outputs) whose slot may be blocked.
  template <typename Count>
  std::vector<size_t> LayoutArguments(const Instruction& instruction,
                                      const std::vector<SlotDef>& slots, const Count& count,
                                      const std::vector<int32_t>& values) {
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

  bool TryBlocked(Instruction& instruction) {
    if (instruction.kind != InstructionKind::kOp) return false;
    const LayoutRule rule = instruction.def->layout_rule;
    if (rule == LayoutRule::kPlain) return false;
    const Op& op = *instruction.op;
    const auto inputs = LayoutArguments(
        instruction, instruction.def->inputs,
        [&](const std::string& slot) { return op.Input(slot).size(); }, instruction.inputs);
    const auto outputs = LayoutArguments(
        instruction, instruction.def->outputs,
        [&](const std::string& slot) { return op.Output(slot).size(); }, instruction.outputs);
    const bool wanted = rule == LayoutRule::kChannelBlocked
                            ? WantsChannelBlocks(instruction, inputs, outputs)
                            : WantsSameLayout(instruction, inputs, outputs);
    if (!wanted) return false;

    std::vector<TensorMeta> input_metas = Metas(instruction.inputs, Layout::Plain());
    std::vector<TensorMeta> output_metas = Metas(instruction.outputs, Layout::Plain());
    for (size_t i : inputs) {
      if (CanBlock(instruction.inputs[i])) input_metas[i].layout = blocked_;
    }
    for (size_t i : outputs) {
      const int32_t value = instruction.outputs[i];
      if (CanBlock(value) && Value(value).storage == Storage::kArena)
        output_metas[i].layout = blocked_;
    }
    const OpContext context(op, *instruction.def, input_metas, output_metas, plan_.place);
    if (registry_.FindKernel(context) == nullptr || ForcedKernelIsForPlain(instruction, context)) {
      return false;
    }

    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      if (instruction.inputs[i] >= 0 && instruction.reads_data[i]) {
        instruction.inputs[i] = InLayout(instruction.inputs[i], input_metas[i].layout, instruction);
      }
    }
    for (size_t i : outputs) {
      if (output_metas[i].layout.is_plain()) continue;
      Value(instruction.outputs[i]).meta.layout = blocked_;
      ++blocked_values_;
    }
    return true;
  }

  // Whether a kernel is forced that takes the op's shapes, but not the layouts of `blocked`.
  bool ForcedKernelIsForPlain(const Instruction& instruction, const OpContext& blocked) {
    const std::string_view forced = plan_.ForcedKernel(instruction.op->type);
    if (forced.empty() || registry_.FindKernel(blocked, forced) != nullptr) return false;
    const OpContext plain(*instruction.op, *instruction.def,
                          Metas(instruction.inputs, Layout::Plain()),
                          Metas(instruction.outputs, Layout::Plain()), plan_.place);
    return registry_.FindKernel(plain, forced) != nullptr;
  }

  bool WantsChannelBlocks(const Instruction& instruction, const std::vector<size_t>& inputs,
                          const std::vector<size_t>& outputs) {
    const auto blockable = [&](const std::vector<int32_t>& values,
                               const std::vector<size_t>& picked) {
      return std::ranges::any_of(picked, [&](size_t i) { return CanBlock(values[i]); });
    };
    return blockable(instruction.inputs, inputs) || blockable(instruction.outputs, outputs);
  }

  // An op without a preference follows its inputs, if all its tensors have one shape.
  bool WantsSameLayout(const Instruction& instruction, const std::vector<size_t>& inputs,
                       const std::vector<size_t>& outputs) {
    if (!instruction.def->zero_preserving || inputs.empty() || outputs.empty()) return false;
    const Shape& shape = Value(instruction.inputs[inputs[0]]).meta.shape;
    const auto fits = [&](int32_t value) {
      return Value(value).meta.shape == shape && CanBlock(value);
    };
    const auto in = [&](size_t i) { return fits(instruction.inputs[i]); };
    const auto out = [&](size_t i) {
      return fits(instruction.outputs[i]) &&
             Value(instruction.outputs[i]).storage == Storage::kArena;
    };
    const auto blocked = [&](size_t i) {
      return Value(instruction.inputs[i]).meta.layout == blocked_;
    };
    return std::ranges::all_of(inputs, in) && std::ranges::all_of(outputs, out) &&
           std::ranges::any_of(inputs, blocked);
  }

  std::vector<TensorMeta> Metas(const std::vector<int32_t>& values, Layout layout) {
    std::vector<TensorMeta> metas;
    for (int32_t value : values) {
      metas.push_back(value < 0 ? TensorMeta{} : Value(value).meta);
      metas.back().layout = layout;
    }
    return metas;
  }

  void MakePlain(Instruction& instruction) {
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      int32_t& input = instruction.inputs[i];
      if (input >= 0 && instruction.reads_data[i]) {
        input = InLayout(input, Layout::Plain(), instruction);
      }
    }
  }

  void MakeFetchesPlain() {
    for (int32_t& fetch : plan_.fetches) {
      if (Value(fetch).meta.layout.is_plain()) continue;
      const Instruction last = plan_.instructions.back();
      fetch = InLayout(fetch, Layout::Plain(), last);
    }
    std::ranges::move(rewritten_, std::back_inserter(plan_.instructions));
  }

  // The value, or its twin in `layout`: an earlier reorder's result is taken again.
  int32_t InLayout(int32_t value, Layout layout, const Instruction& reader) {
    if (Value(value).meta.layout == layout) return value;
    const auto [it, is_new] = twins_.try_emplace({value, layout.channel_block}, -1);
    if (!is_new) return it->second;
    PlanValue twin = Value(value);
    twin.meta.layout = layout;
    twin.meta.persistable = false;
    twin.storage = Storage::kArena;
    twin.alias_of = -1;
    const int32_t index = static_cast<int32_t>(plan_.values.size());
    plan_.values.push_back(std::move(twin));
    it->second = index;
    twins_[{index, Value(value).meta.layout.channel_block}] = value;
    Instruction reorder;
    reorder.kind = InstructionKind::kCopy;
    reorder.op = reader.op;
    reorder.def = reader.def;
    reorder.position = reader.position;
    reorder.inputs = {value};
    reorder.outputs = {index};
    reorder.reads_data = {true};
    rewritten_.push_back(std::move(reorder));
    ++reorders_;
    return index;
  }

  const OpRegistry& registry_;
  Plan& plan_;
  const Layout blocked_;
  std::vector<Instruction> rewritten_;
  std::map<std::pair<int32_t, int32_t>, int32_t> twins_;  // {value, channel block} -> value
  int64_t blocked_values_ = 0;
  int64_t reorders_ = 0;
};

}  // namespace

PassReport LayoutPass::Apply(const OpRegistry& registry, Plan* plan) const {
  const int32_t block = PreferredChannelBlock();
  if (!plan->place.is_cpu() || block == 1) {
    return {.pass = {}, .changes = 0, .summary = "no blocked layouts on this place"};
  }
  return LayoutAssignment(registry, plan, block).Run();
}

}  // namespace skiff
