#include "tools/model_bench/flop_count.h"

namespace skiff {

double CountFlop(const Plan& plan) {
  double flop = 0;
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind != InstructionKind::kOp || !instruction.def->flop) continue;
    flop += instruction.def->flop(ContextOf(plan, instruction));
  }
  return flop;
}

}  // namespace skiff
