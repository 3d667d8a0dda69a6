#include "framework/executor/run/timed_body.h"

#include <algorithm>
#include <utility>

namespace skiff {

InstructionTime TimeOf(const Plan& plan, const Instruction& instruction, const KernelDef* def,
                       double seconds) {
  InstructionTime time{.type = instruction.Name(),
                       .kernel = def == nullptr ? "" : def->name,
                       .output = "",
                       .seconds = seconds};
  const auto output = std::ranges::find_if(instruction.outputs,
                                           [](ValueId value) { return static_cast<bool>(value); });
  if (output != instruction.outputs.end()) time.output = plan[*output].name;
  return time;
}

void StartBodyTiming(Kernel* kernel) {
  if (auto* body = dynamic_cast<TimedBody*>(kernel)) body->StartTiming();
}

void StopBodyTiming(Kernel* kernel, InstructionTime* whole, std::vector<InstructionTime>* times) {
  auto* body = dynamic_cast<TimedBody*>(kernel);
  if (body == nullptr) return;
  for (InstructionTime& time : body->StopTiming()) {
    whole->seconds -= time.seconds;
    time.type = whole->type + " > " + time.type;
    times->push_back(std::move(time));
  }
}

}  // namespace skiff
