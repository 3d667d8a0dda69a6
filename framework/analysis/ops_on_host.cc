#include "framework/analysis/ops_on_host.h"

namespace skiff {

std::map<std::string, int64_t> OpsOnHost(const Plan& plan) {
  std::map<std::string, int64_t> counts;
  if (plan.place.is_cpu()) return counts;
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind == InstructionKind::kCopy || !instruction.place.is_cpu()) continue;
    if (!instruction.def->is_on_host) ++counts[instruction.Name()];
  }
  return counts;
}

}  // namespace skiff
