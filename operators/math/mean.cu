// CUDA kernels of mean and mean_grad; mean.cc has the formulas.
#include "framework/base/error.h"
#include "operators/math/kernels/cuda_reduction.cuh"

namespace skiff {
namespace {

void CheckHasElements(const Shape& x) {
  SKIFF_ENFORCE(x.element_count() > 0, kInvalidArgument, "mean: X of shape ", x,
                " has no elements, expected at least one");
}

template <typename T>
std::unique_ptr<Kernel> PrepareMean(PrepareContext& context) {
  const Shape& prepared = context.Input("X").shape;
  CheckHasElements(prepared);
  const CudaFold<CudaSumRule<T, T>> fold(context, prepared.element_count());
  const int x = context.InputIndex("X");
  const int out = context.OutputIndex("Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = run.input(x).element_count();
    CheckHasElements(run.input(x).shape());
    fold.Run(run, "mean", CudaFoldView(count, 1),
             {run.input(x).data<T>(), run.output(out).data<T>(), count});
  });
}

template <typename T>
struct SpreadMean {
  template <int kCount>
  __device__ void Do(int64_t i) const {
    const T share = factor * *dout;
    CudaValues<T, kCount> values;
#pragma unroll
    for (int k = 0; k < kCount; ++k) values.at[k] = share;
    StoreValues(values, is_aligned, dx + i);
  }

  const T* dout;
  T* dx;
  T factor;
  bool is_aligned;
};

template <typename T>
std::unique_ptr<Kernel> PrepareMeanGrad(PrepareContext& context) {
  const int gradient = context.InputIndex("Out@GRAD");
  const int output = context.OutputIndex("X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    T* dx = run.output(output).data<T>();
    const int64_t count = run.output(output).element_count();
    ForEachPackOnDevice<T>(run, "mean_grad", count, count,
                           SpreadMean<T>{run.input(gradient).data<T>(), dx,
                                         T{1} / static_cast<T>(count), ArePacksAligned(dx)});
  });
}

}  // namespace

void RegisterMeanCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "mean", [=]<typename T>(PrepareContext& context) {
    return PrepareMean<T>(context);
  });
  AddCudaKernels<float, double>(registry, "mean_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareMeanGrad<T>(context);
  });
}

}  // namespace skiff
