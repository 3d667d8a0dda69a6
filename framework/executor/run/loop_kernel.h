// Runs the body of a loop or a branch (framework/plan/loop.h).
#pragma once

#include <memory>

#include "framework/executor/run/plan_kernels.h"
#include "framework/op/kernel.h"
#include "framework/plan/plan.h"

namespace skiff {

// Prepares the kernels of the body, plans its storage and returns the kernel of the loop. Gives the
// instruction a copy of its loop with the planned storage, and a workspace for the body's arena and
// the carried values. Throws the Errors of PrepareKernels and PlanStorage, and an Error
// (kUnimplemented) for a body on a device with batched rows, or if a sum over the iterations would
// be of a dtype other than float32 and float64.
//
// The kernel takes memory of its own only for stacks of loops whose iterations aren't counted
// before, for arrays, and for values that a body on a device has on the host. The kernel keeps this
// memory from run to run. An Error in the body says in which iteration it occurred.
std::unique_ptr<Kernel> PrepareLoop(const KernelSelection& selection, Instruction* instruction);

}  // namespace skiff
