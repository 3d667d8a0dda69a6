// CUDA kernels of assign and memcpy.
#include <memory>

#include "operators/common/cuda/cuda_bytes.h"
#include "operators/tensor/kernels/cuda_dtypes.h"

namespace skiff {

void RegisterAssignCuda(OpRegistry& registry) {
  const auto prepare = [](PrepareContext& context) {
    return MakeRowsKernel(
        [from = In<>(context, "X"), to = Out<>(context, "Out")](const KernelContext& run) {
          CopyOnDevice(run, from(run), to(run), from.tensor(run).byte_count());
        });
  };
  for (const char* type : {"assign", "memcpy"}) {
    AddCudaKernelsForAllDTypes(registry, type, prepare);
  }
}

}  // namespace skiff
