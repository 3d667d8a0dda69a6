#include "tools/model_bench/flop_count.h"

namespace skiff {

double CountFlop(const Plan& plan, const Instruction& instruction) {
  if (instruction.kind != InstructionKind::kOp || !instruction.def->flop) return 0;
  return instruction.def->flop(ContextOf(plan, instruction));
}

double CountFlop(const Plan& plan) {
  double flop = 0;
  for (const Instruction& instruction : plan.instructions) flop += CountFlop(plan, instruction);
  return flop;
}

}  // namespace skiff
