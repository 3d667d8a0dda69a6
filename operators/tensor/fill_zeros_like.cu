// CUDA kernels of fill_zeros_like.
#include <memory>

#include "operators/common/cuda/cuda_bytes.h"
#include "operators/tensor/kernels/cuda_dtypes.h"

namespace skiff {

void RegisterFillZerosLikeCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(registry, "fill_zeros_like", [](PrepareContext& context) {
    return MakeRowsKernel([out = Out<>(context, "Out")](const KernelContext& run) {
      FillBytesOnDevice(run, out(run), 0, out.tensor(run).byte_count());
    });
  });
}

}  // namespace skiff
