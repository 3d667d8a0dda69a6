// Whether ops have kernels of CUDA, which builds without CUDA leave out.
#pragma once

#include <algorithm>
#include <string>

#include "framework/op/registry.h"

namespace skiff::harness {

// Returns false for an op that the registry doesn't have.
inline bool HasCudaKernels(const OpRegistry& registry, const std::string& type) {
  return registry.Find(type) != nullptr &&
         std::ranges::any_of(registry.Kernels(type), [](const KernelDef& kernel) {
           return kernel.place == PlaceKind::kCuda;
         });
}

inline bool HasAnyCudaKernels(const OpRegistry& registry) {
  return std::ranges::any_of(
      registry.Types(), [&](const std::string& type) { return HasCudaKernels(registry, type); });
}

}  // namespace skiff::harness
