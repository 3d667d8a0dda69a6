// Which instruction set the Highway kernels use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace skiff::harness {

// Those that the kernels are compiled for, the best first: the targets of Highway.
std::vector<int64_t> CompiledInstructionSets();

// Those that this machine has and the kernels are compiled for, the best first.
std::vector<int64_t> InstructionSets();

// "AVX2"
std::string InstructionSetName(int64_t instruction_set);

// While it lives, kernels that are prepared use no better instruction set than this one.
class InstructionSetLimit {
 public:
  explicit InstructionSetLimit(int64_t instruction_set);
  ~InstructionSetLimit();
  InstructionSetLimit(const InstructionSetLimit&) = delete;
  InstructionSetLimit& operator=(const InstructionSetLimit&) = delete;
};

}  // namespace skiff::harness
