#include "framework/transpiler/replay.h"

#include <utility>

namespace skiff {
namespace {

// Returns the attributes of the replay as the kernel of the instruction saw them. Defaults are
// written out, since those of the two definitions may differ.
AttributeMap AttributesFor(const OpDef& replay, const Instruction& instruction) {
  AttributeMap attrs;
  for (const AttrDef& attr : replay.attrs) {
    const AttrDef* of_original = instruction.def->FindAttr(attr.name);
    const Attribute* value =
        of_original == nullptr ? nullptr : EffectiveAttr(*instruction.op, *of_original);
    if (value != nullptr) attrs.emplace(attr.name, *value);
  }
  return attrs;
}

}  // namespace

std::optional<Instruction> MakeReplay(const PassContext& context, Plan* plan,
                                      const Instruction& instruction, const Instruction& origin) {
  if (instruction.kind != InstructionKind::kOp || instruction.def->replayed_by.empty() ||
      !context.ForcedKernel(instruction.op->type).empty()) {
    return std::nullopt;
  }
  const OpDef& def = context.registry.Get(instruction.def->replayed_by);
  SlotValues inputs;
  for (const SlotDef& slot : def.inputs) {
    const ValueId input = instruction.InputIn(slot.name);
    // The replay may read outputs of the original: saved statistics, for example.
    const ValueId value = input ? input : instruction.OutputIn(slot.name);
    if (!value && !slot.dispensable) return std::nullopt;
    inputs.emplace_back(slot.name, value);
  }
  SlotValues outputs;
  for (const SlotDef& slot : def.outputs) {
    outputs.emplace_back(slot.name, instruction.OutputIn(slot.name));
  }
  Instruction replay =
      MakeInstruction(plan, def, origin, AttributesFor(def, instruction), inputs, outputs);
  if (context.registry.CanRun(ContextOf(*plan, replay))) return replay;
  // MakeInstruction has given the op to the plan.
  plan->made_ops.pop_back();
  return std::nullopt;
}

}  // namespace skiff
