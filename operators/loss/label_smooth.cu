// CUDA kernels of label_smooth and its gradient; label_smooth.cc has the formulas.
#include <algorithm>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"

namespace skiff {
namespace {

#include "operators/loss/kernels/label_smooth_formula-inl.h"

// Out may be X.
template <typename T>
struct SmoothLabels {
  template <int kCount>
  __device__ void Do(int64_t i) const {
    CudaValues<T, kCount> values = LoadValues<kCount>(x + i, is_aligned);
    // A pack is within a row.
    const int64_t first = prior == nullptr ? 0 : Divide(i, classes).rest;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      values.at[k] =
          SmoothedLabel(values.at[k], kept, prior == nullptr ? share : epsilon * prior[first + k]);
    }
    StoreValues(values, is_aligned, out + i);
  }

  const T* x;
  const T* prior;
  T* out;
  int64_t classes;
  T kept;
  T epsilon;
  T share;
  bool is_aligned;
};

template <typename T>
std::unique_ptr<Kernel> PrepareLabelSmooth(PrepareContext& context) {
  const T epsilon = static_cast<T>(context.Attr<float>("epsilon"));
  const In<T> x_input(context, "X");
  const In<T> prior_input(context, "PriorDist");
  const Out<T> output(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* x = x_input(run);
    const T* prior = prior_input(run);
    T* out = output(run);
    // Of a vector, the classes are the rows.
    const int64_t classes = x_input.shape(run).dim(-1);
    ForEachPackOnDevice<T>(run, "label_smooth", x_input.count(run), classes,
                           SmoothLabels<T>{.x = x,
                                           .prior = prior,
                                           .out = out,
                                           .classes = classes,
                                           .kept = T{1} - epsilon,
                                           .epsilon = epsilon,
                                           .share = epsilon / static_cast<T>(classes),
                                           .is_aligned = ArePacksAligned(x, out)});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareLabelSmoothGrad(PrepareContext& context) {
  const T kept = T{1} - static_cast<T>(context.Attr<float>("epsilon"));
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> output(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* dout = gradient(run);
    T* dx = output(run);
    const int64_t count = gradient.count(run);
    // The scaling of the forward op, without a share.
    ForEachPackOnDevice<T>(run, "label_smooth_grad", count, count,
                           SmoothLabels<T>{.x = dout,
                                           .prior = nullptr,
                                           .out = dx,
                                           .classes = 1,
                                           .kept = kept,
                                           .epsilon = 0,
                                           .share = 0,
                                           .is_aligned = ArePacksAligned(dout, dx)});
  });
}

}  // namespace

void RegisterLabelSmoothCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "label_smooth", [=]<typename T>(PrepareContext& context) {
    return PrepareLabelSmooth<T>(context);
  });
  AddCudaKernels<float, double>(
      registry, "label_smooth_grad",
      [=]<typename T>(PrepareContext& context) { return PrepareLabelSmoothGrad<T>(context); });
}

}  // namespace skiff
