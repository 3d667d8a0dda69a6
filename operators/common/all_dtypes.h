// Kernels that are the same for every dtype.
#pragma once

#include <functional>
#include <string_view>

#include "framework/op/registry.h"

namespace skiff {

// Registers `prepare` as the plain CPU kernel for every dtype. `accepts` is KernelDef::accepts.
void AddKernelsForAllDTypes(OpRegistry& registry, std::string_view type,
                            const KernelFactory& prepare,
                            const std::function<bool(const OpContext&)>& accepts = {});

}  // namespace skiff
