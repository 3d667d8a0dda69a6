// CUDA kernels of binary ops whose slots have other names, or that broadcast in another way.
// cuda_binary.h adds the kernels of all other binary ops.
#pragma once

#include <functional>
#include <memory>

#include "framework/op/kernel.h"
#include "operators/common/broadcast.h"
#include "operators/elementwise/kernels/binary.h"
#include "operators/elementwise/kernels/cuda_binary_launch.h"

namespace skiff {

// The indices of the arguments, and the loops over X and Y of a run, which may have fewer rows than
// the kernel was prepared for.
struct CudaBinaryArguments {
  int x = -1;
  int y = -1;
  int out = -1;
  std::function<Broadcast(const Tensor& x, const Tensor& y)> loops_of;
};

// The same for a gradient op. Out@GRAD has Out's shape; -1: a gradient that isn't wanted.
struct CudaBinaryGradArguments {
  BinaryGradInputs inputs;
  int dx = -1;
  int dy = -1;
  std::function<Broadcast(const Shape& dout)> loops_of;
};

std::unique_ptr<Kernel> MakeCudaBinaryKernel(const OpContext& context,
                                             CudaBinaryArguments arguments,
                                             CudaBinaryLauncher launcher,
                                             ThrowBinaryFault throw_fault = nullptr);
std::unique_ptr<Kernel> MakeCudaBinaryGradKernel(PrepareContext& context,
                                                 CudaBinaryGradArguments arguments,
                                                 CudaBinaryGradLauncher launcher);

}  // namespace skiff
