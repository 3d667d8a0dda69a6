// CUDA kernels of unary ops: what a .cu file says about its op, and the functions that add its
// kernels. Includes little, so that the .cu files of many small ops compile fast; cuda_unary.cc is
// compiled once for all of them.
#pragma once

#include <cstdint>

#include "framework/base/dtype.h"
#include "framework/op/data_fault.h"
#include "operators/common/cuda/cuda_launch_size.h"
#include "operators/elementwise/kernels/unary_facts.h"

namespace skiff {

class OpRegistry;

inline constexpr int kMaxUnaryTensors = 2;

struct CudaUnaryLaunch {
  const void* saved = nullptr;  // what a gradient reads besides `from`
  const void* from = nullptr;
  void* to = nullptr;  // may be `from` or `saved`
  int64_t count = 0;   // not 0
  UnaryNumbers numbers;
  // Tensors of one element that replace attributes; nullptr: absent.
  const void* tensors[kMaxUnaryTensors] = {};
  DType tensor_dtypes[kMaxUnaryTensors] = {};
  CudaGrid grid;
  uint64_t* fault = nullptr;
};
// Issues out[i] = f(x[i]) or dx[i] = f(saved[i], dout[i]). Returns what has failed,
// nullptr if nothing has.
using CudaUnaryLauncher = const char* (*)(const CudaUnaryLaunch& launch);

struct CudaUnaryFacts {
  UnaryFacts op;
  const char* tensors[kMaxUnaryTensors] = {};  // slots
  // Throws the Error of a fault that the kernel has noted; nullptr: it notes none.
  void (*throw_fault)(const DataFault& fault) = nullptr;
};

void AddCudaUnaryKernel(OpRegistry& registry, const CudaUnaryFacts& facts, DType dtype,
                        CudaUnaryLauncher launcher);
void AddCudaUnaryGradKernel(OpRegistry& registry, const CudaUnaryFacts& facts, DType dtype,
                            CudaUnaryLauncher launcher);

}  // namespace skiff
