#include "framework/transpiler/plan_uses.h"

namespace skiff {

PlanUses::PlanUses(const Plan& plan)
    : plan_(plan), readers_(DataReaders(plan)), writer_(plan.values.size(), kNobody) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    for (int32_t output : plan.instructions[i].outputs) {
      if (output >= 0) writer_[static_cast<size_t>(output)] = i;
    }
  }
}

const Shape& PlanUses::ShapeOf(int32_t value) const {
  return plan_.values[static_cast<size_t>(value)].meta.shape;
}

size_t PlanUses::WriterOf(int32_t value) const {
  return value < 0 ? kNobody : writer_[static_cast<size_t>(value)];
}

const std::vector<size_t>& PlanUses::ReadersOf(int32_t value) const {
  return readers_[static_cast<size_t>(value)];
}

size_t PlanUses::OnlyReader(int32_t value) const {
  if (value < 0 || plan_.values[static_cast<size_t>(value)].storage != Storage::kArena) {
    return kNobody;
  }
  const std::vector<size_t>& readers = ReadersOf(value);
  return readers.size() == 1 && readers[0] < plan_.instructions.size() ? readers[0] : kNobody;
}

}  // namespace skiff
