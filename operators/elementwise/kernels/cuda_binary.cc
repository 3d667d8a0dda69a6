#include "operators/elementwise/kernels/cuda_binary.h"

#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "operators/common/broadcast.h"
#include "operators/elementwise/kernels/binary.h"
#include "operators/elementwise/kernels/cuda_binary_kernel.h"

namespace skiff {

void AddCudaBinaryKernel(OpRegistry& registry, StaticText type, DType dtype,
                         CudaBinaryLauncher launcher, ThrowBinaryFault throw_fault) {
  registry.AddCudaKernel(type, dtype, [=](PrepareContext& context) {
    const auto loops_of = [loops = RunBroadcast(context)](const Tensor& x, const Tensor& y) {
      return loops.Of(x, y);
    };
    return MakeCudaBinaryKernel(context,
                                {.x = context.InputIndex("X"),
                                 .y = context.InputIndex("Y"),
                                 .out = context.OutputIndex("Out"),
                                 .loops_of = loops_of},
                                launcher, throw_fault);
  });
}

void AddCudaBinaryGradKernel(OpRegistry& registry, StaticText type, DType dtype,
                             CudaBinaryGradLauncher launcher) {
  registry.AddCudaKernel(StrCat(type, "_grad"), dtype, [=](PrepareContext& context) {
    const auto loops_of = [loops = RunGradBroadcast(context)](const Shape& dout) {
      return loops.Of(dout, Layout::Plain());
    };
    return MakeCudaBinaryGradKernel(context,
                                    {.inputs = FindBinaryGradInputs(context),
                                     .dx = context.OutputIndex("X@GRAD"),
                                     .dy = context.OutputIndex("Y@GRAD"),
                                     .loops_of = loops_of},
                                    launcher);
  });
}

}  // namespace skiff
