// CUDA kernels of sequence_reshape: copies.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"

namespace skiff {
namespace {

std::unique_ptr<Kernel> PrepareSequenceReshape(const In<>& from, const Out<>& to) {
  return MakeRowsKernel([=](const KernelContext& run) {
    CopyOnDevice(run, from(run), to(run), to.tensor(run).byte_count());
  });
}

template <typename T>
void AddSequenceReshapeForwardKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_reshape", [](PrepareContext& context) {
    return PrepareSequenceReshape({context, "X"}, {context, "Out"});
  });
}

template <typename T>
void AddSequenceReshapeGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_reshape_grad", [](PrepareContext& context) {
    return PrepareSequenceReshape({context, "Out@GRAD"}, {context, "X@GRAD"});
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
