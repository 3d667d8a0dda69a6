// CUDA kernels of assign.
#include <memory>

#include "operators/common/cuda/cuda_bytes.h"
#include "operators/tensor/kernels/cuda_dtypes.h"

namespace skiff {

void RegisterAssignCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(registry, "assign", [](PrepareContext& context) {
    return MakeRowsKernel(
        [from = In<>(context, "X"), to = Out<>(context, "Out")](const KernelContext& run) {
          CopyOnDevice(run, from(run), to(run), from.tensor(run).byte_count());
        });
  });
}

}  // namespace skiff
