// CUDA kernels of is_empty: the host knows how many elements there are.
#include "operators/common/cuda_bytes.h"
#include "operators/tensor/kernels/cuda_dtypes.h"

namespace skiff {

void RegisterIsEmptyCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(registry, "is_empty", [](PrepareContext& context) {
    return MakeRowsKernel(
        [x = context.InputIndex("X"), out = context.OutputIndex("Out")](const KernelContext& run) {
          const int is_empty = run.input(x).element_count() == 0 ? 1 : 0;
          FillBytesOnDevice(run, run.output(out).raw_data(), is_empty, sizeof(bool));
        });
  });
}

}  // namespace skiff
