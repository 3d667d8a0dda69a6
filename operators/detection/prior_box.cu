// CUDA kernel of prior_box; kernels/prior_boxes.h has the formula.
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/detection/kernels/prior_boxes.h"

namespace skiff {

void RegisterPriorBoxCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "prior_box", [=]<typename T>(PrepareContext& context) {
    return MakeKernel([arguments = PriorBoxArguments<T>(context)](const KernelContext& run) {
      arguments.ForEachPrior(run, [&](int64_t cells, const PriorOfCell<T>& write) {
        ForEachOnDevice(run, "prior_box", cells, write);
      });
    });
  });
}

}  // namespace skiff
