#include "framework/plan/plan.h"

#include <sstream>
#include <utility>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

std::vector<TensorMeta> MetasOf(const Plan& plan, const std::vector<int32_t>& values) {
  std::vector<TensorMeta> metas;
  metas.reserve(values.size());
  for (int32_t value : values) {
    metas.push_back(value < 0 ? TensorMeta{} : plan.values[static_cast<size_t>(value)].meta);
  }
  return metas;
}

void PrintValue(const Plan& plan, int32_t index, std::ostream& stream) {
  if (index < 0) {
    stream << kEmptyVarName;
    return;
  }
  const PlanValue& value = plan.values[static_cast<size_t>(index)];
  stream << value.name << "#" << index << " " << value.meta.dtype << value.meta.shape;
  if (!value.meta.layout.is_plain()) stream << " " << value.meta.layout;
  switch (value.storage) {
    case Storage::kScope:
      stream << " @scope";
      break;
    case Storage::kFeed:
      stream << " @feed";
      break;
    case Storage::kArena:
      if (value.alias_of >= 0) {
        stream << " =#" << value.alias_of;
      } else {
        stream << " @" << value.offset;
      }
      break;
  }
}

void PrintValues(const Plan& plan, const std::vector<int32_t>& values, std::ostream& stream) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) stream << ", ";
    PrintValue(plan, values[i], stream);
  }
}

}  // namespace

void Plan::CoverWithOneSegment() {
  segments = {{.begin = 0, .end = instructions.size(), .row_capacity = 0}};
}

int32_t Plan::StorageOf(int32_t value) const {
  while (values[static_cast<size_t>(value)].alias_of >= 0) {
    value = values[static_cast<size_t>(value)].alias_of;
  }
  return value;
}

PrepareContext ContextOf(const Plan& plan, const Instruction& instruction) {
  return PrepareContext(*instruction.op, *instruction.def, MetasOf(plan, instruction.inputs),
                        MetasOf(plan, instruction.outputs), plan.place);
}

std::string PrintPlan(const Plan& plan) {
  std::ostringstream stream;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    stream << i << ": ";
    PrintValues(plan, instruction.outputs, stream);
    stream << " = " << (instruction.kind == InstructionKind::kCopy ? "copy" : instruction.op->type)
           << "(";
    PrintValues(plan, instruction.inputs, stream);
    stream << ")\n";
  }
  stream << "max live " << plan.max_live_bytes << " bytes, planned " << plan.planned_bytes
         << ", without reuse " << plan.unshared_bytes << "\n";
  return stream.str();
}

}  // namespace skiff
