#include "framework/analysis/plan_uses.h"

#include <algorithm>

namespace skiff {

std::vector<std::vector<size_t>> DataReaders(const Plan& plan) {
  std::vector<std::vector<size_t>> readers(plan.values.size());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    for (size_t j = 0; j < instruction.inputs.size(); ++j) {
      if (instruction.inputs[j] < 0 || !instruction.reads_data[j]) continue;
      std::vector<size_t>& of_value = readers[static_cast<size_t>(instruction.inputs[j])];
      if (of_value.empty() || of_value.back() != i) of_value.push_back(i);
    }
  }
  for (int32_t fetch : plan.fetches) {
    readers[static_cast<size_t>(fetch)].push_back(plan.instructions.size());
  }
  return readers;
}

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
  if (value < 0) return kNobody;
  const PlanValue& of = plan_.values[static_cast<size_t>(value)];
  const bool is_checkpoint = std::ranges::count(plan_.memory.checkpoints, of.name) > 0;
  if (of.storage != Storage::kArena || is_checkpoint) return kNobody;
  const std::vector<size_t>& readers = ReadersOf(value);
  return readers.size() == 1 && readers[0] < plan_.instructions.size() ? readers[0] : kNobody;
}

}  // namespace skiff
