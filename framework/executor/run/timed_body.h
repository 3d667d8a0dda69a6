// Kernels that run a body of instructions and can measure the time of each instruction.
#pragma once

#include <vector>

#include "framework/executor/api/instruction_time.h"
#include "framework/op/kernel.h"
#include "framework/plan/plan.h"

namespace skiff {

class TimedBody {
 public:
  virtual ~TimedBody() = default;

  // Measures the times of instructions from now on.
  virtual void StartTiming() = 0;
  // Stops measuring. Returns the time of each instruction, in order, over all iterations and runs
  // since StartTiming; instructions of inner bodies come last.
  virtual std::vector<InstructionTime> StopTiming() = 0;
};

// Returns the description of an instruction with this time. `def` may be nullptr.
InstructionTime TimeOf(const Plan& plan, const Instruction& instruction, const KernelDef* def,
                       double seconds);

// Calls StartTiming if the kernel is a TimedBody.
void StartBodyTiming(Kernel* kernel);
// If the kernel is a TimedBody, takes the times of its instructions off the kernel's time, *whole,
// and appends the times to *times. The type of *whole precedes each type there: "while > mul".
void StopBodyTiming(Kernel* kernel, InstructionTime* whole, std::vector<InstructionTime>* times);

}  // namespace skiff
