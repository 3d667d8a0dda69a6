// The kernel of c_reducescatter, for all places.
#pragma once

#include <memory>

#include "framework/op/kernel.h"
#include "operators/collective/kernels/reducer.h"

namespace skiff {

// `reducer`, of the place of the kernel, must outlive the kernel.
std::unique_ptr<Kernel> PrepareReduceScatter(PrepareContext& context, const Reducer& reducer);

}  // namespace skiff
