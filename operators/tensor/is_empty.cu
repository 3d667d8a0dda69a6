// CUDA kernels of is_empty: the host knows how many elements there are.
#include "operators/common/cuda/cuda_bytes.h"
#include "operators/tensor/kernels/cuda_dtypes.h"

namespace skiff {

void RegisterIsEmptyCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(registry, "is_empty", [](PrepareContext& context) {
    return MakeRowsKernel(
        [x = In<>(context, "X"), out = Out<>(context, "Out")](const KernelContext& run) {
          const int is_empty = x.count(run) == 0 ? 1 : 0;
          FillBytesOnDevice(run, out(run), is_empty, sizeof(bool));
        });
  });
}

}  // namespace skiff
