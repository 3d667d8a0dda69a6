#include "tools/model_bench/flop_count.h"

#include "framework/analysis/flop_estimate.h"

namespace skiff {

double CountFlop(const Plan& plan) {
  double flop = 0;
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind != InstructionKind::kOp) continue;
    flop += EstimateFlop(ContextOf(plan, instruction)).value_or(0);
  }
  return flop;
}

}  // namespace skiff
