// Kernels that run a body of instructions, and can say what each of them took.
#pragma once

#include <vector>

#include "framework/executor/api/instruction_time.h"
#include "framework/op/kernel.h"
#include "framework/plan/plan.h"

namespace skiff {

class TimedBody {
 public:
  virtual ~TimedBody() = default;

  // Measures from now on what the instructions take.
  virtual void StartTiming() = 0;
  // Ends that, and returns the time of each instruction, in order, over all iterations and runs
  // since then; those of bodies inside come last.
  virtual std::vector<InstructionTime> StopTiming() = 0;
};

// Returns what describes an instruction, with this time. `def` may be nullptr.
InstructionTime TimeOf(const Plan& plan, const Instruction& instruction, const KernelDef* def,
                       double seconds);

// Calls StartTiming if the kernel is a TimedBody.
void StartBodyTiming(Kernel* kernel);
// If the kernel is a TimedBody, moves the times of its instructions from *whole, that of the
// kernel, to the end of *times. Their types then begin with that of *whole: "while > mul".
void StopBodyTiming(Kernel* kernel, InstructionTime* whole, std::vector<InstructionTime>* times);

}  // namespace skiff
