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
std::unique_ptr<Kernel> PrepareSequenceReverse(PrepareContext& context, int from, int to) {
  return MakeRowsKernel(
      [=, level = SendLevel(context, "X"), x = context.InputIndex("X"),
       row_bytes = RowWidth(context, "X") * int64_t{sizeof(T)}](const KernelContext& run) {
        const int64_t rows = run.output(to).shape()[0];
        if (rows == 0) return;
        CopyRows(run, run.input(from).raw_data(), rows, row_bytes,
                 ReverseMoves{level->Send(run, x)}, run.output(to).raw_data());
      });
}

template <typename T>
void AddSequenceReverseForwardKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_reverse",
                   [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                     return PrepareSequenceReverse<T>(context, context.InputIndex("X"),
                                                      context.OutputIndex("Y"));
                   });
}

template <typename T>
void AddSequenceReverseGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_reverse_grad",
                   [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                     return PrepareSequenceReverse<T>(context, context.InputIndex("Y@GRAD"),
                                                      context.OutputIndex("X@GRAD"));
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
