// CUDA kernels of lod_reset: copies. Offsets that are data are for the host.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"

namespace skiff {
namespace {

std::unique_ptr<Kernel> PrepareLodReset(const In<>& from, const Out<>& to) {
  return MakeRowsKernel([=](const KernelContext& run) {
    CopyOnDevice(run, from(run), to(run), to.tensor(run).byte_count());
  });
}

template <typename T>
void AddResetKernel(OpRegistry& registry) {
  registry.AddCudaKernel(
      "lod_reset", kDTypeOf<T>,
      [](PrepareContext& context) {
        return PrepareLodReset({context, "X"}, {context, "Out"});
      },
      [](const OpContext& context) {
        return !context.HasInput("Y") || context.Input("Y").lod_level > 0;
      });
}

template <typename T>
void AddLodResetKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "lod_reset_grad", [](PrepareContext& context) {
    return PrepareLodReset({context, "Out@GRAD"}, {context, "X@GRAD"});
  });
}

}  // namespace

void RegisterLodResetCuda(OpRegistry& registry) {
  AddResetKernel<Float16>(registry);
  AddResetKernel<BFloat16>(registry);
  AddResetKernel<float>(registry);
  AddResetKernel<double>(registry);
  AddResetKernel<int32_t>(registry);
  AddResetKernel<int64_t>(registry);
  AddLodResetKernels<Float16>(registry);
  AddLodResetKernels<BFloat16>(registry);
  AddLodResetKernels<float>(registry);
  AddLodResetKernels<double>(registry);
}

}  // namespace skiff
