// CUDA kernels of assign.
#include <memory>

#include "operators/common/cuda_bytes.h"
#include "operators/tensor/kernels/cuda_dtypes.h"

namespace skiff {

void RegisterAssignCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(
      registry, "assign", [](PrepareContext& context) -> std::unique_ptr<Kernel> {
        return MakeRowsKernel([from = context.InputIndex("X"),
                               to = context.OutputIndex("Out")](const KernelContext& run) {
          const Tensor& source = run.input(from);
          Tensor& target = run.output(to);
          CopyOnDevice(run, source.raw_data(), target.raw_data(), source.byte_count());
        });
      });
}

}  // namespace skiff
