// CUDA kernels of fill_zeros_like.
#include <memory>

#include "operators/common/cuda_bytes.h"
#include "operators/tensor/kernels/cuda_dtypes.h"

namespace skiff {

void RegisterFillZerosLikeCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(
      registry, "fill_zeros_like", [](PrepareContext& context) -> std::unique_ptr<Kernel> {
        return MakeRowsKernel([out = context.OutputIndex("Out")](const KernelContext& run) {
          Tensor& zeros = run.output(out);
          FillBytesOnDevice(run, zeros.raw_data(), 0, zeros.byte_count());
        });
      });
}

}  // namespace skiff
