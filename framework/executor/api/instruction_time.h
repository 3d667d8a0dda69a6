// The time that an instruction of a plan has taken.
#pragma once

#include <string>

namespace skiff {

struct InstructionTime {
  std::string type = {};  // Instruction::Name
  std::string kernel = {};
  std::string output = {};  // the first output's variable
  double seconds = 0;
  // Before the instruction, for collective instructions that run beside it; for the last
  // instruction also at the end of the run.
  double waited_seconds = 0;
};

}  // namespace skiff
