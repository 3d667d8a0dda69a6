// The CUDA kernel of sequence_enumerate; sequence_enumerate.cc has the formula.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"

namespace skiff {
namespace {

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    Enumerate(const T* x, CudaOffsets sequences, int64_t rows, int64_t window, T pad,
              int threads_of_row, T* out) {
  ForEachColumn(
      rows, window, threads_of_row,
      [&](int64_t row) { return sequences.End(sequences.SequenceOf(row)); },
      [&](int64_t row, int64_t column, int64_t end) {
        out[row * window + column] = row + column < end ? x[row + column] : pad;
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequenceEnumerate(PrepareContext& context) {
  return MakeRowsKernel([window = context.IntAttr("win_size"),
                         pad = static_cast<T>(context.IntAttr("pad_value")),
                         level = SendLevel(context, "X"), x = In<T>(context, "X"),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    const int64_t rows = out.shape(run)[0];
    if (rows == 0) return;
    const RowThreads threads(rows, window);
    Enumerate<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        x(run), level->Send(run, x.tensor(run)), rows, window, pad, threads.of_row, out(run));
    CheckLaunch("sequence_enumerate");
  });
}

}  // namespace

void RegisterSequenceEnumerateCuda(OpRegistry& registry) {
  AddCudaKernel<int32_t>(registry, "sequence_enumerate", PrepareSequenceEnumerate<int32_t>);
  AddCudaKernel<int64_t>(registry, "sequence_enumerate", PrepareSequenceEnumerate<int64_t>);
}

}  // namespace skiff
