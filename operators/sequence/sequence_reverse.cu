// CUDA kernels of sequence_reverse; sequence_reverse.cc has the formula.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

struct ReverseMoves {
  CudaOffsets sequences;

  __device__ RowMove operator()(int64_t row) const {
    const int64_t i = sequences.SequenceOf(row);
    return {sequences.Begin(i) + sequences.End(i) - 1 - row, row};
  }
};

// Reverses the rows of argument `from` by the LoD of X.
template <typename T>
std::unique_ptr<Kernel> PrepareSequenceReverse(PrepareContext& context, const In<>& from,
                                               const Out<>& to) {
  return MakeRowsKernel(
      [=, level = SendLevel(context, "X"), x = In<>(context, "X"),
       row_bytes = RowWidth(context, "X") * int64_t{sizeof(T)}](const KernelContext& run) {
        const int64_t rows = to.shape(run)[0];
        if (rows == 0) return;
        CopyRows(run, from(run), rows, row_bytes, ReverseMoves{level->Send(run, x.tensor(run))},
                 to(run));
      });
}

template <typename T>
void AddSequenceReverseForwardKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_reverse", [](PrepareContext& context) {
    return PrepareSequenceReverse<T>(context, {context, "X"}, {context, "Y"});
  });
}

template <typename T>
void AddSequenceReverseGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_reverse_grad", [](PrepareContext& context) {
    return PrepareSequenceReverse<T>(context, {context, "Y@GRAD"}, {context, "X@GRAD"});
  });
}

}  // namespace

void RegisterSequenceReverseCuda(OpRegistry& registry) {
  AddSequenceReverseForwardKernel<float>(registry);
  AddSequenceReverseForwardKernel<double>(registry);
  AddSequenceReverseForwardKernel<int32_t>(registry);
  AddSequenceReverseForwardKernel<int64_t>(registry);
  AddSequenceReverseGradKernel<float>(registry);
  AddSequenceReverseGradKernel<double>(registry);
}

}  // namespace skiff
