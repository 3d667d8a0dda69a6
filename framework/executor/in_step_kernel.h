// Runs an instruction of ListKernels in step.
#pragma once

#include <memory>

#include "framework/op/kernel.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// The kernel of an instruction of the kind kInStep, whose arguments are those of the instruction;
// asks for the workspaces of its members there. Error if a member's kernel is no ListKernel.
std::unique_ptr<Kernel> MakeInStepKernel(const OpRegistry& registry, const Plan& plan,
                                         Instruction* instruction);

}  // namespace skiff
