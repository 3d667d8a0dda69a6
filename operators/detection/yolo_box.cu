// CUDA kernel of yolo_box; kernels/yolo_decoding.h has the formula.
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/detection/kernels/yolo_decoding.h"

namespace skiff {

void RegisterYoloBoxCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "yolo_box", [=]<typename T>(PrepareContext& context) {
    return MakeRowsKernel([arguments = YoloBoxArguments<T>(context)](const KernelContext& run) {
      arguments.ForEachAnchor(run, [&](int64_t cells, const YoloBoxesOfAnchor<T>& decode) {
        ForEachOnDevice(run, "yolo_box", cells, decode);
      });
    });
  });
}

}  // namespace skiff
