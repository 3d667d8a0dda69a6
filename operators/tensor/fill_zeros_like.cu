// CUDA kernels of fill_zeros_like.
#include "operators/tensor/kernels/cuda_copy.cuh"

namespace skiff {

void RegisterFillZerosLikeCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(
      registry, "fill_zeros_like", [](PrepareContext& context) -> std::unique_ptr<Kernel> {
        return MakeRowsKernel([out = context.OutputIndex("Out")](const KernelContext& run) {
          Tensor& zeros = run.output(out);
          if (zeros.byte_count() == 0) return;
          CheckCopy(cudaMemsetAsync(zeros.raw_data(), 0, static_cast<size_t>(zeros.byte_count()),
                                    StreamOf(run)),
                    "fill_zeros_like");
        });
      });
}

}  // namespace skiff
