// Runs a fused instruction: its members, block by block.
#pragma once

#include <memory>

#include "framework/op/kernel.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns the kernel of a fused instruction, for the instruction's arguments and workspace. Each
// thread has kernels and tensors of its own, for whole blocks and for the rest at the end, so a
// member's kernel never runs twice at once and a run makes nothing. Throws an Error if a member has
// no kernel for a block.
std::unique_ptr<Kernel> MakeFusedKernel(const OpRegistry& registry, const Plan& plan,
                                        const Instruction& fused);

}  // namespace skiff
