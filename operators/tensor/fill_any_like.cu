// CUDA kernels of fill_any_like.
#include "operators/tensor/kernels/cuda_fill.cuh"
#include "operators/tensor/kernels/fill.h"

namespace skiff {

void RegisterFillAnyLikeCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(registry, "fill_any_like", [](PrepareContext& context) {
    const Out<> out(context, "Out");
    const FillValue value{.real = context.Attr<float>("value")};
    const uint64_t bits = FillBits(value, context.Output("Out").dtype);
    return MakeRowsKernel(
        [=](const KernelContext& run) { FillOnDevice(run, bits, nullptr, &out.tensor(run)); });
  });
}

}  // namespace skiff
