// CUDA kernels of fill_constant_batch_size_like.
#include "operators/tensor/kernels/cuda_fill.cuh"
#include "operators/tensor/kernels/fill.h"

namespace skiff {

void RegisterFillConstantBatchSizeLikeCuda(OpRegistry& registry) {
  AddCudaFillKernels(registry, "fill_constant_batch_size_like",
                     [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                       const int out = context.OutputIndex("Out");
                       const uint64_t bits =
                           FillBits(FillValueFromAttributes(context), context.Output("Out").dtype);
                       return MakeRowsKernel([=](const KernelContext& run) {
                         FillOnDevice(run, bits, nullptr, &run.output(out));
                       });
                     });
}

}  // namespace skiff
