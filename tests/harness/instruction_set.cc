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

// The targets of this machine, less what the registry of ops has disabled by then. Asking the
// processor takes longer than many a kernel, on a virtual machine.
int64_t TargetsHere() {
  static const int64_t targets = hwy::SupportedTargets();
  return targets;
}

// What the limit leaves; 0: there is no limit.
int64_t limited_targets = 0;

}  // namespace

std::vector<int64_t> CompiledInstructionSets() { return Split(kCompiled); }

std::vector<int64_t> InstructionSets() {
  return Split((limited_targets == 0 ? TargetsHere() : limited_targets) & kCompiled);
}

std::string InstructionSetName(int64_t instruction_set) { return hwy::TargetName(instruction_set); }

InstructionSetLimit::InstructionSetLimit(int64_t instruction_set) {
  limited_targets = TargetsHere() & ~(instruction_set - 1);
  hwy::SetSupportedTargetsForTest(limited_targets);
  hwy::GetChosenTarget().Update(limited_targets);
}

InstructionSetLimit::~InstructionSetLimit() {
  limited_targets = 0;
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(TargetsHere());
}

}  // namespace skiff::harness
