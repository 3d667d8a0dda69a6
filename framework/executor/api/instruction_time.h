// The time that an instruction of a plan has taken.
#pragma once

#include <string>

namespace skiff {

struct InstructionTime {
  std::string type = {};  // Instruction::Name
  std::string kernel = {};
  std::string output = {};  // the first output's variable
  double seconds = 0;
};

}  // namespace skiff
