// The kernel on a device of an op that keeps its states in host memory (kOnHostAttr).
#pragma once

#include <memory>

#include "framework/op/kernel.h"
#include "framework/op/registry.h"

namespace skiff {

// Returns a BackgroundKernel that runs the op's CPU kernel, chosen from `registry`, beside the
// program on context.place(), a device. The inputs that lie on the device, such as parameters, are
// copied for it. Run only appends work to streams, so the host waits for nothing. All such kernels
// of a device share one pending().
//
// Throws Error (kFailedPrecondition) if an output isn't in host memory, or if the CPU kernel needs
// derived forms, which nobody makes there; and the Errors of the CPU kernel's factory. Bind throws
// Error (kFailedPrecondition) for a state that isn't in host memory.
//
// An Error of a run is thrown once, by pending()->Wait() or by a later run, of any such op. Until
// then, all such ops of the device skip the submitted runs: their states stay.
std::unique_ptr<Kernel> PrepareHostStateKernel(const PrepareContext& context,
                                               const OpRegistry& registry);

}  // namespace skiff
