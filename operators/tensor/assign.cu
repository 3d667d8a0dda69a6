// CUDA kernels of assign.
#include "operators/tensor/kernels/cuda_copy.cuh"

namespace skiff {

void RegisterAssignCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(
      registry, "assign", [](PrepareContext& context) -> std::unique_ptr<Kernel> {
        return MakeRowsKernel([from = context.InputIndex("X"),
                               to = context.OutputIndex("Out")](const KernelContext& run) {
          const Tensor& source = run.input(from);
          Tensor& target = run.output(to);
          if (source.byte_count() == 0 || source.raw_data() == target.raw_data()) return;
          CheckCopy(cudaMemcpyAsync(target.raw_data(), source.raw_data(),
                                    static_cast<size_t>(source.byte_count()),
                                    cudaMemcpyDeviceToDevice, StreamOf(run)),
                    "assign");
        });
      });
}

}  // namespace skiff
