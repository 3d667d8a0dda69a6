// Registration of CUDA kernels that read no element, of any dtype.
#pragma once

#include "framework/op/registry.h"

namespace skiff {

inline void AddCudaKernelsForAllDTypes(OpRegistry& registry, const char* type,
                                       const KernelFactory& prepare) {
  for (const DType dtype :
       {DType::kBool, DType::kInt8, DType::kUint8, DType::kInt16, DType::kInt32, DType::kInt64,
        DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    registry.AddKernel(type, {.name = "cuda",
                              .place = PlaceKind::kCuda,
                              .dtype = dtype,
                              .prepare = prepare,
                              .accepts = {}});
  }
}

}  // namespace skiff
