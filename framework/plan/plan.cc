#include "framework/plan/plan.h"

#include <algorithm>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

std::vector<TensorMeta> MetasOf(const Plan& plan, const std::vector<ValueId>& values) {
  std::vector<TensorMeta> metas;
  metas.reserve(values.size());
  for (ValueId value : values) {
    metas.push_back(value ? plan[value].meta : TensorMeta{});
  }
  return metas;
}

// Returns the index of argument `i` of `slot` among the arguments of all slots; -1 if there is
// none.
int IndexInSlots(const std::vector<SlotDef>& defs, const Slots& slots, std::string_view slot,
                 size_t i) {
  size_t index = 0;
  for (const SlotDef& def : defs) {
    const auto found = std::ranges::find(slots, def.name, &SlotArguments::slot);
    const size_t arguments = found == slots.end() ? 0 : found->arguments.size();
    if (def.name == slot) return i < arguments ? static_cast<int>(index + i) : -1;
    index += arguments;
  }
  return -1;
}

// Fills the slots of an op of this type and the values of an instruction, in the order of the
// definition.
void FillSlots(const Plan& plan, std::string_view type, const std::vector<SlotDef>& defs,
               const SlotValues& given, Slots* slots, std::vector<ValueId>* values) {
  for (const auto& [slot, value] : given) {
    const bool is_known = std::ranges::count(defs, slot, &SlotDef::name) > 0;
    SKIFF_ENFORCE(!value || is_known, kInvalidArgument, type, ": value \"", plan[value].name,
                  "\" is given for slot \"", slot, "\", which the definition doesn't have");
  }
  for (const SlotDef& def : defs) {
    SlotArguments filled{.slot = def.name, .arguments = {}};
    for (const auto& [slot, value] : given) {
      if (slot != def.name || !value) continue;
      filled.arguments.push_back(plan[value].name);
      values->push_back(value);
    }
    if (!filled.arguments.empty()) slots->push_back(std::move(filled));
  }
}

}  // namespace

ValueId Instruction::InputIn(std::string_view slot, size_t i) const {
  const int index = IndexInSlots(def->inputs, op->inputs, slot, i);
  return index < 0 ? ValueId() : inputs[static_cast<size_t>(index)];
}

ValueId Instruction::OutputIn(std::string_view slot, size_t i) const {
  const int index = IndexInSlots(def->outputs, op->outputs, slot, i);
  return index < 0 ? ValueId() : outputs[static_cast<size_t>(index)];
}

std::string Instruction::Name() const {
  if (kind == InstructionKind::kCopy) return "copy";
  if (kind == InstructionKind::kOp || kind == InstructionKind::kLoop) return op->type;
  std::vector<std::string> types;
  for (const Instruction& member : members) types.push_back(member.op->type);
  return StrCat("fused(", Join(types, ","), ")");
}

std::vector<bool> ReadsData(const OpDef& def, const Op& op) {
  std::vector<bool> reads;
  for (const SlotDef& slot : def.inputs) {
    const bool reads_data = !slot.shape_only && slot.attribute.empty();
    reads.insert(reads.end(), op.Input(slot.name).size(), reads_data);
  }
  return reads;
}

Instruction MakeInstruction(Plan* plan, const OpDef& def, const Instruction& origin,
                            const AttributeMap& attrs, const SlotValues& inputs,
                            const SlotValues& outputs) {
  auto op = std::make_shared<Op>(def.type);
  op->attrs = attrs;
  op->site = origin.op->site;
  // Random ops draw by their id, so a replay of one gets the same numbers.
  op->id = origin.op->id;
  op->SetAttr(kOpRoleAttr, origin.op->role());
  if (origin.op->HasAttr(kOpNamescopeAttr)) {
    op->SetAttr(kOpNamescopeAttr, origin.op->Attr<std::string>(kOpNamescopeAttr));
  }
  Instruction made;
  made.def = &def;
  made.block = origin.block;
  made.position = origin.position;
  made.place = origin.place;
  FillSlots(*plan, def.type, def.inputs, inputs, &op->inputs, &made.inputs);
  FillSlots(*plan, def.type, def.outputs, outputs, &op->outputs, &made.outputs);
  made.reads_data = ReadsData(def, *op);
  // A pass that makes a malformed op fails here, and not in a kernel.
  CheckOp(def, *op);
  made.op = op.get();
  plan->made_ops.push_back(std::move(op));
  return made;
}

int64_t StorageBytes(const PlanValue& value) {
  if (value.storage == Storage::kKernelOwned) return 0;
  return StorageBytes(value.meta.shape, value.meta.dtype, value.meta.layout);
}

ValueId Plan::StorageOf(ValueId value) const {
  // Passes put values directly on a root, but a caller may chain them.
  while (values[value].alias_of) value = values[value].alias_of;
  return value;
}

bool IsTransfer(const Plan& plan, const Instruction& instruction) {
  return instruction.kind == InstructionKind::kCopy &&
         plan[instruction.inputs[0]].place != plan[instruction.outputs[0]].place;
}

PrepareContext ContextOf(const Plan& plan, const Instruction& instruction) {
  return PrepareContext(*instruction.op, *instruction.def, MetasOf(plan, instruction.inputs),
                        MetasOf(plan, instruction.outputs), instruction.place);
}

}  // namespace skiff
