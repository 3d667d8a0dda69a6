// CUDA kernels of sequence_softmax; sequence_softmax.cc has the formulas. A warp takes a sequence.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/sequence/kernels/cuda_sequences.cuh"

namespace skiff {
namespace {

constexpr int kWarps = kCudaThreads / kCudaWarp;

template <typename T>
__device__ T LargerNumber(T a, T b) {
  return a < b ? b : a;
}

// Calls body(lane, begin, end) for each sequence that has rows, by the lanes of a warp.
template <class Body>
__device__ void ForEachSequenceOfWarp(const CudaOffsets& sequences, const Body& body) {
  const int lane = static_cast<int>(threadIdx.x) % kCudaWarp;
  const int64_t stride = int64_t{gridDim.x} * kWarps;
  for (int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.x / kCudaWarp; i < sequences.count;
       i += stride) {
    if (sequences.Begin(i) < sequences.End(i)) body(lane, sequences.Begin(i), sequences.End(i));
  }
}

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    SoftmaxOfSequences(const T* x, CudaOffsets sequences, T* out) {
  ForEachSequenceOfWarp(sequences, [&](int lane, int64_t begin, int64_t end) {
    T largest = -INFINITY;
    for (int64_t row = begin + lane; row < end; row += kCudaWarp)
      largest = LargerNumber(largest, x[row]);
    largest = CombineWarp(largest, LargerNumber<T>);
    T sum = 0;
    for (int64_t row = begin + lane; row < end; row += kCudaWarp) {
      const T power = std::exp(x[row] - largest);
      out[row] = power;
      sum += power;
    }
    sum = CombineWarp(sum, JoinBySum{});
    // A lane reads only what it has written.
    const T factor = 1 / sum;
    for (int64_t row = begin + lane; row < end; row += kCudaWarp) out[row] *= factor;
  });
}

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    SoftmaxGradient(const T* out, const T* gradient, CudaOffsets sequences, T* x_gradient) {
  ForEachSequenceOfWarp(sequences, [&](int lane, int64_t begin, int64_t end) {
    T dot = 0;
    for (int64_t row = begin + lane; row < end; row += kCudaWarp) dot += gradient[row] * out[row];
    dot = CombineWarp(dot, JoinBySum{});
    for (int64_t row = begin + lane; row < end; row += kCudaWarp)
      x_gradient[row] = (gradient[row] - dot) * out[row];
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequenceSoftmax(PrepareContext& context) {
  return MakeRowsKernel([level = SendLevel(context, "X"), x = In<T>(context, "X"),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    if (out.count(run) == 0) return;
    const CudaOffsets sequences = level->Send(run, x.tensor(run));
    SoftmaxOfSequences<T>
        <<<CudaBlocksOfThreads(sequences.count * kCudaWarp), kCudaThreads, 0, StreamOf(run)>>>(
            x(run), sequences, out(run));
    CheckLaunch("sequence_softmax");
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequenceSoftmaxGrad(PrepareContext& context) {
  return MakeRowsKernel([level = SendLevel(context, "X"), x = In<>(context, "X"),
                         out = In<T>(context, "Out"), out_grad = In<T>(context, "Out@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    if (x_grad.count(run) == 0) return;
    const CudaOffsets sequences = level->Send(run, x.tensor(run));
    SoftmaxGradient<T>
        <<<CudaBlocksOfThreads(sequences.count * kCudaWarp), kCudaThreads, 0, StreamOf(run)>>>(
            out(run), out_grad(run), sequences, x_grad(run));
    CheckLaunch("sequence_softmax_grad");
  });
}

template <typename T>
void AddSequenceSoftmaxKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_softmax", PrepareSequenceSoftmax<T>);
  AddCudaKernel<T>(registry, "sequence_softmax_grad", PrepareSequenceSoftmaxGrad<T>);
}

}  // namespace

void RegisterSequenceSoftmaxCuda(OpRegistry& registry) {
  AddSequenceSoftmaxKernels<float>(registry);
  AddSequenceSoftmaxKernels<double>(registry);
}

}  // namespace skiff
