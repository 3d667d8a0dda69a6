// Registration of CUDA kernels that are the same for many dtypes.
#pragma once

#include <vector>

#include "framework/op/registry.h"

namespace skiff {

// Adds the kernel "cuda" that `prepare` makes, for each of the dtypes.
inline void AddCudaKernelsFor(const std::vector<DType>& dtypes, OpRegistry& registry,
                              const char* type, const KernelFactory& prepare) {
  for (const DType dtype : dtypes) {
    registry.AddCudaKernel(type, dtype, prepare);
  }
}

// Adds it for all dtypes.
inline void AddCudaKernelsForAllDTypes(OpRegistry& registry, const char* type,
                                       const KernelFactory& prepare) {
  AddCudaKernelsFor(
      {DType::kBool, DType::kInt8, DType::kUint8, DType::kInt16, DType::kInt32, DType::kInt64,
       DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64},
      registry, type, prepare);
}

}  // namespace skiff
