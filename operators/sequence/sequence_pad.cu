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
                         level = SendLevel(context, "X"), x = In<>(context, "X"),
                         pad_value = In<>(context, "PadValue"), out = Out<>(context, "Out"),
                         length = Out<int64_t>(context, "Length")](const KernelContext& run) {
    const CudaOffsets sequences = level->Send(run, x.tensor(run));
    if (sequences.count == 0) return;
    LengthsOf<<<CudaBlocksOfThreads(sequences.count), kCudaThreads, 0, StreamOf(run)>>>(
        sequences, length(run));
    CheckLaunch("sequence_pad");
    // Sequences without elements may have any number of rows.
    if (out.count(run) == 0) return;
    CopyRows(run, x(run), out.shape(run)[0] * out.shape(run)[1], row_bytes,
             PadMoves{sequences, out.shape(run)[1]}, out(run),
             {pad_value(run), pad_value.tensor(run).byte_count()});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequencePadGrad(PrepareContext& context) {
  return MakeRowsKernel([row_bytes = RowWidth(context, "X") * int64_t{sizeof(T)},
                         level = SendLevel(context, "X"), x = In<>(context, "X"),
                         out_grad = In<>(context, "Out@GRAD"),
                         x_grad = Out<>(context, "X@GRAD")](const KernelContext& run) {
    const int64_t rows = x_grad.shape(run)[0];
    if (rows == 0) return;
    CopyRows(run, out_grad(run), rows, row_bytes,
             UnpadMoves{level->Send(run, x.tensor(run)), out_grad.shape(run)[1]}, x_grad(run));
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
