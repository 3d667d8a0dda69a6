// Copies and zeros of whole tensors on CUDA, of any dtype.
#pragma once

#include <cuda_runtime.h>

#include "framework/op/registry.h"
#include "operators/common/cuda_launch.h"

namespace skiff {

inline void CheckCopy(cudaError_t status, const char* what) {
  SKIFF_ENFORCE(status == cudaSuccess, kIo, what, ": ", cudaGetErrorString(status));
}

// Registers `prepare` for every dtype: the kernel reads no element.
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
