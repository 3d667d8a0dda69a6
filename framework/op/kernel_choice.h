// The rule by which one of an op's kernels runs, unless a caller names a kernel or a tuner times
// them.
//
// Priorities and KernelDef::is_worthwhile estimate time. Memory counts too: the scratch memory of a
// kernel, which is its workspaces and derived forms, adds to what lives while the op runs. Scratch
// memory is *modest* if it is at most ModestScratchBytes. A kernel that takes more gives way to a
// kernel with modest scratch memory, even a slower one, if there is any besides references.
//
// The rule looks at one op alone. So it makes the same choice whatever else shares the plan's
// memory, and memory options change no result.
#pragma once

#include <cstdint>

#include "framework/base/place.h"
#include "framework/op/math_mode.h"
#include "framework/op/registry.h"

namespace skiff {

// Prepares a kernel and returns the bytes of its workspaces and derived forms. Throws what the
// kernel's factory throws. `math`: PrepareContext::math.
int64_t ScratchBytes(const KernelDef& kernel, const OpContext& context,
                     MathMode math = MathMode::kFull);

// Returns the scratch memory that is modest for an op whose inputs and outputs have so many bytes:
// 4 MiB more than twice these bytes on the CPU, than five times on a device.
int64_t ModestScratchBytes(int64_t argument_bytes, Place place);
// Returns the same for an op, where it runs.
int64_t ModestScratchBytes(const OpContext& context);

// Returns the kernel that runs, among the kernels that accept the context. Worthwhile kernels come
// first, then kernels with a higher priority, then kernels that were registered earlier. The first
// one with modest scratch memory runs; if none has, the first worthwhile one. A reference runs only
// if it is the first worthwhile one. Prepares kernels only if there is a choice. Throws what
// OpRegistry::SelectKernel and ScratchBytes throw.
const KernelDef& KernelByRule(const OpRegistry& registry, const OpContext& context,
                              MathMode math = MathMode::kFull);

}  // namespace skiff
