#include "tests/harness/instruction_set.h"

#include <hwy/highway.h>

namespace skiff::harness {
namespace {

constexpr int64_t kCompiled = HWY_AVX3 | HWY_AVX2 | HWY_SSE4 | HWY_STATIC_TARGET;

// Highway gives the better target the lower bit.
std::vector<int64_t> Split(int64_t targets) {
  std::vector<int64_t> sets;
  for (int64_t rest = targets; rest != 0; rest &= rest - 1) sets.push_back(rest & -rest);
  return sets;
}

void Choose(int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

std::vector<int64_t> CompiledInstructionSets() { return Split(kCompiled); }

std::vector<int64_t> InstructionSets() { return Split(hwy::SupportedTargets() & kCompiled); }

std::string InstructionSetName(int64_t instruction_set) { return hwy::TargetName(instruction_set); }

InstructionSetLimit::InstructionSetLimit(int64_t instruction_set) {
  Choose(hwy::SupportedTargets() & ~(instruction_set - 1));
}

InstructionSetLimit::~InstructionSetLimit() { Choose(0); }

}  // namespace skiff::harness
