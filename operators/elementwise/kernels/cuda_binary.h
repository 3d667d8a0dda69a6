// The functions that add the CUDA kernels of a binary op. Includes little, so that the .cu files of
// many ops compile fast; cuda_binary_kernel.cc is compiled once for all of them.
#pragma once

#include "framework/base/dtype.h"
#include "framework/base/static_text.h"
#include "operators/elementwise/kernels/cuda_binary_launch.h"

namespace skiff {

class OpRegistry;

void AddCudaBinaryKernel(OpRegistry& registry, StaticText type, DType dtype,
                         CudaBinaryLauncher launcher, ThrowBinaryFault throw_fault = nullptr);
void AddCudaBinaryGradKernel(OpRegistry& registry, StaticText type, DType dtype,
                             CudaBinaryGradLauncher launcher);

}  // namespace skiff
