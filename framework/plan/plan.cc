#include "framework/plan/plan.h"

#include <algorithm>
#include <locale>
#include <sstream>
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

void PrintValue(const Plan& plan, ValueId id, std::ostream& stream) {
  if (!id) {
    stream << kEmptyVarName;
    return;
  }
  const PlanValue& value = plan[id];
  stream << value.name << "#" << id.index() << " " << value.meta.dtype << value.meta.shape;
  if (!value.meta.layout.is_plain()) stream << " " << value.meta.layout;
  switch (value.storage) {
    case Storage::kScope:
      stream << " @scope";
      break;
    case Storage::kFeed:
      stream << " @feed";
      break;
    case Storage::kArena:
      if (value.alias_of) {
        stream << " =#" << value.alias_of.index();
      } else if (value.offset >= 0) {
        stream << " @" << value.offset;
      }
      break;
  }
}

void PrintValues(const Plan& plan, const std::vector<ValueId>& values, std::ostream& stream) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) stream << ", ";
    PrintValue(plan, values[i], stream);
  }
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

// Fills the slots of an op and the values of an instruction, in the order of the definition.
void FillSlots(const Plan& plan, const std::vector<SlotDef>& defs, const SlotValues& given,
               Slots* slots, std::vector<ValueId>* values) {
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
  if (kind == InstructionKind::kOp) return op->type;
  std::vector<std::string> types;
  for (const Instruction& member : members) types.push_back(member.op->type);
  return StrCat("fused(", Join(types, ","), ")");
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
  made.position = origin.position;
  FillSlots(*plan, def.inputs, inputs, &op->inputs, &made.inputs);
  FillSlots(*plan, def.outputs, outputs, &op->outputs, &made.outputs);
  for (const SlotArguments& slot : op->inputs) {
    made.reads_data.insert(made.reads_data.end(), slot.arguments.size(),
                           !def.FindInput(slot.slot)->shape_only);
  }
  // A pass that makes a malformed op fails here, and not in a kernel.
  CheckOp(def, *op);
  made.op = op.get();
  plan->made_ops.push_back(std::move(op));
  return made;
}

int64_t StorageBytes(const PlanValue& value) {
  return StorageBytes(value.meta.shape, value.meta.dtype, value.meta.layout);
}

ValueId Plan::StorageOf(ValueId value) const {
  // Passes put values directly on a root, but a caller may chain them.
  while (values[value].alias_of) value = values[value].alias_of;
  return value;
}

PrepareContext ContextOf(const Plan& plan, const Instruction& instruction) {
  return PrepareContext(*instruction.op, *instruction.def, MetasOf(plan, instruction.inputs),
                        MetasOf(plan, instruction.outputs), plan.place);
}

std::string PrintPlan(const Plan& plan) {
  std::ostringstream stream;
  // Otherwise the locale of the host program could group the digits of numbers.
  stream.imbue(std::locale::classic());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    stream << i << ": ";
    PrintValues(plan, instruction.outputs, stream);
    stream << " = " << instruction.Name() << "(";
    PrintValues(plan, instruction.inputs, stream);
    stream << ")\n";
  }
  stream << "fetch ";
  PrintValues(plan, plan.fetches, stream);
  stream << "\n";
  for (const ContiguousValues& list : plan.contiguous) {
    stream << "contiguous, aligned to " << list.alignment_bytes << " bytes: ";
    PrintValues(plan, list.values, stream);
    stream << "\n";
  }
  if (plan.unshared_bytes == 0) return stream.str();
  stream << "max live " << plan.max_live_bytes << " bytes, planned " << plan.planned_bytes
         << ", without reuse " << plan.unshared_bytes << "\n";
  return stream.str();
}

}  // namespace skiff
