// CUDA kernel of box_coder; kernels/box_coding.h has the formulas.
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/detection/kernels/box_coding.h"

namespace skiff {

void RegisterBoxCoderCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "box_coder", [=]<typename T>(PrepareContext& context) {
    return MakeRowsKernel([arguments = BoxCoderArguments<T>(context)](const KernelContext& run) {
      const int64_t boxes = arguments.boxes(run);
      if (arguments.encodes()) {
        ForEachOnDevice(run, "box_coder", boxes, EncodeBox<T>{arguments.Of(run)});
      } else {
        ForEachOnDevice(run, "box_coder", boxes, DecodeBox<T>{arguments.Of(run)});
      }
    });
  });
}

}  // namespace skiff
