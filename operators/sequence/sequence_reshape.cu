// CUDA kernels of sequence_reshape: copies.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"

namespace skiff {
namespace {

std::unique_ptr<Kernel> PrepareSequenceReshape(int from, int to) {
  return MakeRowsKernel([=](const KernelContext& run) {
    CopyOnDevice(run, run.input(from).raw_data(), run.output(to).raw_data(),
                 run.output(to).byte_count());
  });
}

template <typename T>
void AddSequenceReshapeForwardKernel(OpRegistry& registry) {
  AddCudaKernel<T>(
      registry, "sequence_reshape", [](PrepareContext& context) -> std::unique_ptr<Kernel> {
        return PrepareSequenceReshape(context.InputIndex("X"), context.OutputIndex("Out"));
      });
}

template <typename T>
void AddSequenceReshapeGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_reshape_grad",
                   [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                     return PrepareSequenceReshape(context.InputIndex("Out@GRAD"),
                                                   context.OutputIndex("X@GRAD"));
                   });
}

}  // namespace

void RegisterSequenceReshapeCuda(OpRegistry& registry) {
  AddSequenceReshapeForwardKernel<float>(registry);
  AddSequenceReshapeForwardKernel<double>(registry);
  AddSequenceReshapeForwardKernel<int32_t>(registry);
  AddSequenceReshapeForwardKernel<int64_t>(registry);
  AddSequenceReshapeGradKernel<float>(registry);
  AddSequenceReshapeGradKernel<double>(registry);
}

}  // namespace skiff
