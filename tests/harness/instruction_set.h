// The instruction sets that Highway kernels can use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace skiff::harness {

// Returns the instruction sets that kernels are compiled for (Highway's targets), the best first.
std::vector<int64_t> CompiledInstructionSets();

// Returns the compiled instruction sets that this machine and the limit leave, the best first. Call
// it, and make a limit, once the registry of ops is there: that applies SKIFF_MAX_ISA.
std::vector<int64_t> InstructionSets();

// Returns a name such as "AVX2".
std::string InstructionSetName(int64_t instruction_set);

// While an object exists, kernels are prepared for this instruction set or a lesser one. Objects
// can't be nested: the destructor removes all limits.
class InstructionSetLimit {
 public:
  explicit InstructionSetLimit(int64_t instruction_set);
  ~InstructionSetLimit();
  InstructionSetLimit(const InstructionSetLimit&) = delete;
  InstructionSetLimit& operator=(const InstructionSetLimit&) = delete;
};

}  // namespace skiff::harness
