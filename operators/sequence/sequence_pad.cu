// CUDA kernels of sequence_pad; sequence_pad.cc has the formula.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// Row i of X@GRAD.
struct UnpadMoves {
  CudaOffsets sequences;
  int64_t length;

  __device__ RowMove operator()(int64_t row) const {
    const int64_t i = sequences.SequenceOf(row);
    return {i * length + row - sequences.Begin(i), row};
  }
};

__global__ void __launch_bounds__(kCudaThreads) LengthsOf(CudaOffsets sequences, int64_t* lengths) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < sequences.count; i += stride)
    lengths[i] = sequences.End(i) - sequences.Begin(i);
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequencePad(PrepareContext& context) {
  return MakeRowsKernel([row_bytes = RowWidth(context, "X") * int64_t{sizeof(T)},
                         level = SendLevel(context, "X"), x = context.InputIndex("X"),
                         pad_value = context.InputIndex("PadValue"),
                         out = context.OutputIndex("Out"),
                         length = context.OutputIndex("Length")](const KernelContext& run) {
    const CudaOffsets sequences = level->Send(run, x);
    if (sequences.count == 0) return;
    LengthsOf<<<CudaBlocksOfThreads(sequences.count), kCudaThreads, 0, StreamOf(run)>>>(
        sequences, run.output(length).data<int64_t>());
    CheckLaunch("sequence_pad");
    // Sequences without elements may have any number of rows.
    Tensor& padded = run.output(out);
    if (padded.element_count() == 0) return;
    const Tensor& pad = run.input(pad_value);
    CopyRows(run, run.input(x).raw_data(), padded.shape()[0] * padded.shape()[1], row_bytes,
             PadMoves{sequences, padded.shape()[1]}, padded.raw_data(),
             {pad.raw_data(), pad.byte_count()});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequencePadGrad(PrepareContext& context) {
  return MakeRowsKernel([row_bytes = RowWidth(context, "X") * int64_t{sizeof(T)},
                         level = SendLevel(context, "X"), x = context.InputIndex("X"),
                         out_grad = context.InputIndex("Out@GRAD"),
                         x_grad = context.OutputIndex("X@GRAD")](const KernelContext& run) {
    const int64_t rows = run.output(x_grad).shape()[0];
    if (rows == 0) return;
    CopyRows(run, run.input(out_grad).raw_data(), rows, row_bytes,
             UnpadMoves{level->Send(run, x), run.input(out_grad).shape()[1]},
             run.output(x_grad).raw_data());
  });
}

template <typename T>
void AddSequencePadForwardKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_pad", PrepareSequencePad<T>);
}

template <typename T>
void AddSequencePadGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_pad_grad", PrepareSequencePadGrad<T>);
}

}  // namespace

void RegisterSequencePadCuda(OpRegistry& registry) {
  AddSequencePadForwardKernel<float>(registry);
  AddSequencePadForwardKernel<double>(registry);
  AddSequencePadForwardKernel<int32_t>(registry);
  AddSequencePadForwardKernel<int64_t>(registry);
  AddSequencePadGradKernel<float>(registry);
  AddSequencePadGradKernel<double>(registry);
}

}  // namespace skiff
