// CUDA kernels of sequence_reshape: copies.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"

namespace skiff {
namespace {

std::unique_ptr<Kernel> Prepare(int from, int to) {
  return MakeRowsKernel([=](const KernelContext& run) {
    CopyOnDevice(run, run.input(from).raw_data(), run.output(to).byte_count(),
                 run.output(to).raw_data());
  });
}

template <typename T>
void AddForwardKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_reshape",
                   [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                     return Prepare(context.InputIndex("X"), context.OutputIndex("Out"));
                   });
}

template <typename T>
void AddGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_reshape_grad",
                   [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                     return Prepare(context.InputIndex("Out@GRAD"), context.OutputIndex("X@GRAD"));
                   });
}

}  // namespace

void RegisterSequenceReshapeCuda(OpRegistry& registry) {
  AddForwardKernel<float>(registry);
  AddForwardKernel<double>(registry);
  AddForwardKernel<int32_t>(registry);
  AddForwardKernel<int64_t>(registry);
  AddGradKernel<float>(registry);
  AddGradKernel<double>(registry);
}

}  // namespace skiff
