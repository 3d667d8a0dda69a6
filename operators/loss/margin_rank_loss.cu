// CUDA kernels of margin_rank_loss and its gradient; margin_rank_loss.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/argument_data.h"
#include "operators/common/cuda_for_each.cuh"
#include "operators/common/cuda_grid.h"
#include "operators/common/cuda_vector_loop.cuh"
#include "operators/common/cuda_vectors.cuh"

namespace skiff {
namespace {

template <typename T>
struct MarginRankLosses {
  const T* label;
  const T* x1;
  const T* x2;
  T* out;
  T* activated;
  T margin;
};

// A thread reads all of a vector before it writes any of it, so the outputs may be inputs, here and
// below.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    SetLosses(MarginRankLosses<T> of, int64_t count, bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    const CudaVector<T, kSize> signs = LoadVector<kSize>(of.label + i, length, is_whole);
    CudaVector<T, kSize> losses = LoadVector<kSize>(of.x1 + i, length, is_whole);
    CudaVector<T, kSize> activated = LoadVector<kSize>(of.x2 + i, length, is_whole);
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const T loss = of.margin - signs.values[j] * (losses.values[j] - activated.values[j]);
      losses.values[j] = loss < T{0} ? T{0} : loss;  // NaN stays NaN
      activated.values[j] = loss > T{0} ? T{1} : T{0};
    }
    StoreVector(losses, length, is_whole, of.out + i);
    StoreVector(activated, length, is_whole, of.activated + i);
  });
}

// The gradients may be absent.
template <typename T>
struct MarginRankGradients {
  const T* activated;
  const T* label;
  const T* dout;
  T* dx1;
  T* dx2;
};

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    SetGradients(MarginRankGradients<T> of, int64_t count, bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    const CudaVector<T, kSize> activated = LoadVector<kSize>(of.activated + i, length, is_whole);
    const CudaVector<T, kSize> signs = LoadVector<kSize>(of.label + i, length, is_whole);
    CudaVector<T, kSize> left = LoadVector<kSize>(of.dout + i, length, is_whole);
    CudaVector<T, kSize> right;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      right.values[j] = left.values[j] * signs.values[j] * activated.values[j];
      left.values[j] = -right.values[j];
    }
    if (of.dx1 != nullptr) StoreVector(left, length, is_whole, of.dx1 + i);
    if (of.dx2 != nullptr) StoreVector(right, length, is_whole, of.dx2 + i);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareMarginRankLoss(PrepareContext& context) {
  const T margin = static_cast<T>(context.Attr<float>("margin"));
  const int label = context.InputIndex("Label");
  const int x1 = context.InputIndex("X1");
  const int x2 = context.InputIndex("X2");
  const int activated = context.OutputIndex("Activated");
  const int out = context.OutputIndex("Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = run.input(label).element_count();
    if (count == 0) return;
    const MarginRankLosses<T> of{run.input(label).data<T>(),      run.input(x1).data<T>(),
                                 run.input(x2).data<T>(),         run.output(out).data<T>(),
                                 run.output(activated).data<T>(), margin};
    SetLosses<T><<<GridOfVectors(run, count, sizeof(T)).blocks, kCudaThreads, 0, StreamOf(run)>>>(
        of, count, ArePacksAligned(of.label, of.x1, of.x2, of.out, of.activated));
    CheckLaunch("margin_rank_loss");
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareMarginRankLossGrad(PrepareContext& context) {
  const int activated = context.InputIndex("Activated");
  const int label = context.InputIndex("Label");
  const int dout = context.InputIndex("Out@GRAD");
  const int dx1 = context.OutputIndex("X1@GRAD");
  const int dx2 = context.OutputIndex("X2@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = run.input(label).element_count();
    if (count == 0) return;
    const MarginRankGradients<T> of{run.input(activated).data<T>(), run.input(label).data<T>(),
                                    run.input(dout).data<T>(), OutputData<T>(run, dx1),
                                    OutputData<T>(run, dx2)};
    SetGradients<T>
        <<<GridOfVectors(run, count, sizeof(T)).blocks, kCudaThreads, 0, StreamOf(run)>>>(
            of, count, ArePacksAligned(of.activated, of.label, of.dout, of.dx1, of.dx2));
    CheckLaunch("margin_rank_loss_grad");
  });
}

}  // namespace

void RegisterMarginRankLossCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "margin_rank_loss",
      [=]<typename T>(PrepareContext& context) { return PrepareMarginRankLoss<T>(context); });
  AddCudaKernels<float, double>(
      registry, "margin_rank_loss_grad",
      [=]<typename T>(PrepareContext& context) { return PrepareMarginRankLossGrad<T>(context); });
}

}  // namespace skiff
