#include "tools/model_bench/flop_count.h"

#include <algorithm>

#include "framework/plan/loop.h"

namespace skiff {

double CountFlop(const Plan& plan, const Instruction& instruction) {
  if (instruction.kind == InstructionKind::kLoop) {
    const Loop& loop = *instruction.loop;
    return static_cast<double>(std::max<int64_t>(loop.iterations, 1)) * CountFlop(loop.body);
  }
  if (instruction.kind != InstructionKind::kOp || !instruction.def->flop) return 0;
  return instruction.def->flop(ContextOf(plan, instruction));
}

double CountFlop(const Plan& plan) {
  double flop = 0;
  for (const Instruction& instruction : plan.instructions) flop += CountFlop(plan, instruction);
  return flop;
}

}  // namespace skiff
