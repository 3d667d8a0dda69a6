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
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = x.count(run);
    CheckHasElements(x.shape(run));
    fold.Run(run, "mean", CudaFoldView(count, 1), {x(run), out(run), count});
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
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = dx.count(run);
    ForEachPackOnDevice<T>(run, "mean_grad", count, count,
                           SpreadMean<T>{gradient(run), dx(run), T{1} / static_cast<T>(count),
                                         ArePacksAligned(dx(run))});
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
