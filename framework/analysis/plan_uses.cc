#include "framework/analysis/plan_uses.h"

#include <algorithm>

namespace skiff {
namespace {

ValueTable<std::vector<size_t>> Readers(const Plan& plan, bool counts_shapes) {
  ValueTable<std::vector<size_t>> readers(plan.values.size());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    for (size_t j = 0; j < instruction.inputs.size(); ++j) {
      if (!instruction.inputs[j] || (!counts_shapes && !instruction.reads_data[j])) {
        continue;
      }
      std::vector<size_t>& of_value = readers[instruction.inputs[j]];
      // An instruction that reads a value twice counts once.
      if (of_value.empty() || of_value.back() != i) of_value.push_back(i);
    }
  }
  for (ValueId fetch : plan.fetches) {
    readers[fetch].push_back(plan.instructions.size());
  }
  return readers;
}

}  // namespace

ValueTable<std::vector<size_t>> DataReaders(const Plan& plan) { return Readers(plan, false); }

ValueTable<std::vector<size_t>> AllReaders(const Plan& plan) { return Readers(plan, true); }

PlanUses::PlanUses(const Plan& plan)
    : plan_(plan), readers_(DataReaders(plan)), writer_(plan.values.size(), kNobody) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    for (ValueId output : plan.instructions[i].outputs) {
      if (output) writer_[output] = i;
    }
  }
}

const Shape& PlanUses::ShapeOf(ValueId value) const { return plan_[value].meta.shape; }

size_t PlanUses::WriterOf(ValueId value) const { return value ? writer_[value] : kNobody; }

const std::vector<size_t>& PlanUses::ReadersOf(ValueId value) const { return readers_[value]; }

size_t PlanUses::OnlyReader(ValueId value) const {
  if (!value) return kNobody;
  // The scope and the caller may read what is outside the arena, so it never has only one reader.
  const PlanValue& of = plan_[value];
  if (of.storage != Storage::kArena || of.is_checkpoint) return kNobody;
  const std::vector<size_t>& readers = ReadersOf(value);
  return readers.size() == 1 && readers[0] < plan_.instructions.size() ? readers[0] : kNobody;
}

}  // namespace skiff
