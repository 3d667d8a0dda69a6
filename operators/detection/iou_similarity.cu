// CUDA kernel of iou_similarity; kernels/box_overlap.h has the formula.
#include "framework/op/arguments.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/detection/kernels/box_overlap.h"

namespace skiff {

void RegisterIouSimilarityCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "iou_similarity", [=]<typename T>(PrepareContext& context) {
        return MakeRowsKernel([offset = PixelOffset<T>(context.Attr<bool>("box_normalized")),
                               x = In<T>(context, "X"), y = In<T>(context, "Y"),
                               out = Out<T>(context, "Out")](const KernelContext& run) {
          ForEachOnDevice(run, "iou_similarity", out.count(run),
                          BoxOverlaps<T>{y.shape(run)[0], offset, x(run), y(run), out(run)});
        });
      });
}

}  // namespace skiff
