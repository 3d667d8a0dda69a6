#include "framework/transpiler/plan_rewrite.h"

#include <utility>

namespace skiff {

PlanRewrite::PlanRewrite(const OpRegistry& registry, Plan* plan)
    : registry_(registry),
      plan_(*plan),
      readers_(DataReaders(*plan)),
      writer_(plan->values.size(), kNobody) {
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    for (int32_t output : plan_.instructions[i].outputs) {
      if (output >= 0) writer_[static_cast<size_t>(output)] = i;
    }
  }
}

bool PlanRewrite::Is(size_t i, std::string_view type) const {
  const Instruction& instruction = plan_.instructions[i];
  return instruction.kind == InstructionKind::kOp && instruction.op->type == type &&
         plan_.ForcedKernel(type).empty();
}

bool PlanRewrite::HasKernel(const Instruction& instruction) const {
  return registry_.FindKernel(ContextOf(plan_, instruction)) != nullptr;
}

size_t PlanRewrite::WriterOf(int32_t value) const {
  return value < 0 ? kNobody : writer_[static_cast<size_t>(value)];
}

const std::vector<size_t>& PlanRewrite::ReadersOf(int32_t value) const {
  return readers_[static_cast<size_t>(value)];
}

size_t PlanRewrite::OnlyReader(int32_t value) const {
  if (value < 0 || plan_.values[static_cast<size_t>(value)].storage != Storage::kArena) {
    return kNobody;
  }
  const std::vector<size_t>& readers = ReadersOf(value);
  return readers.size() == 1 && readers[0] < plan_.instructions.size() ? readers[0] : kNobody;
}

void PlanRewrite::Replace(size_t at, Instruction made) { made_.emplace(at, std::move(made)); }

int64_t PlanRewrite::Apply() {
  const auto replacements = static_cast<int64_t>(made_.size());
  std::vector<Instruction> rewritten;
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const auto made = made_.find(i);
    if (made != made_.end()) {
      rewritten.push_back(std::move(made->second));
    } else if (!dropped_.contains(i)) {
      rewritten.push_back(std::move(plan_.instructions[i]));
    }
  }
  plan_.instructions = std::move(rewritten);
  return replacements;
}

}  // namespace skiff
