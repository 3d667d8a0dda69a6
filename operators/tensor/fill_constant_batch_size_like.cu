// CUDA kernels of fill_constant_batch_size_like.
#include "operators/tensor/kernels/cuda_fill.cuh"
#include "operators/tensor/kernels/fill.h"

namespace skiff {

void RegisterFillConstantBatchSizeLikeCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(
      registry, "fill_constant_batch_size_like", [](PrepareContext& context) {
        const Out<> out(context, "Out");
        const uint64_t bits =
            FillBits(FillValueFromAttributes(context), context.Output("Out").dtype);
        return MakeRowsKernel(
            [=](const KernelContext& run) { FillOnDevice(run, bits, nullptr, &out.tensor(run)); });
      });
}

}  // namespace skiff
