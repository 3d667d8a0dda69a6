// CUDA kernels of binary ops: what a .cu file says about its op.
#pragma once

#include <cstdint>
#include <string_view>

#include "operators/common/cuda/cuda_fold_view.h"
#include "operators/common/cuda/cuda_launch_size.h"
#include "operators/common/cuda/cuda_loops.h"

namespace skiff {

struct CudaBinaryLaunch {
  const void* x = nullptr;
  const void* y = nullptr;
  void* out = nullptr;  // may be `x` or `y`
  // Over X and Y. The result, which has as many elements, is contiguous. Not empty.
  CudaLoops<2> loops;
  // Whether a vector of neighbouring results comes from neighbours in X and Y, or from one element
  // there; these are the steps.
  bool has_vectors = false;
  int x_step = 1;
  int y_step = 1;
  CudaGrid grid;
  uint64_t* fault = nullptr;
};
// Issues out = f(x, y). Returns what has failed, nullptr if nothing has.
using CudaBinaryLauncher = const char* (*)(const CudaBinaryLaunch& launch);

// The gradient of an operand.
struct CudaOperandGradient {
  void* gradient = nullptr;  // nullptr: not wanted
  // Whether elements of the operand were repeated: then each has the sum of its gradients.
  bool is_sum = false;
  CudaFoldView sum;
};

struct CudaBinaryGradLaunch {
  // nullptr: not read.
  const void* x = nullptr;
  const void* y = nullptr;
  const void* out = nullptr;
  const void* dout = nullptr;
  CudaOperandGradient of_x;  // may be `dout`, as long as it isn't a sum
  CudaOperandGradient of_y;
  CudaLoops<2> loops;  // over X and Y; empty if there are no elements
  bool x_is_repeated = false;
  bool y_is_repeated = false;
  bool has_vectors = false;
  int x_step = 1;
  int y_step = 1;
  CudaGrid grid;  // of Out@GRAD
  void* workspace = nullptr;
};
using CudaBinaryGradLauncher = const char* (*)(const CudaBinaryGradLaunch& launch);

// Throws the Error of an op for refused data at `position`.
using ThrowBinaryFault = void (*)(std::string_view type, int64_t position);

}  // namespace skiff
