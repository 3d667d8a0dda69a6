// CUDA kernels of label_smooth and its gradient; label_smooth.cc has the formulas.
#include <algorithm>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda_for_each.cuh"

namespace skiff {
namespace {

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
      values.at[k] = kept * values.at[k] + (prior == nullptr ? share : epsilon * prior[first + k]);
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
  const int x_input = context.InputIndex("X");
  const int prior_input = context.InputIndex("PriorDist");
  const int output = context.OutputIndex("Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* x = run.input(x_input).data<T>();
    const T* prior = prior_input < 0 ? nullptr : run.input(prior_input).data<T>();
    T* out = run.output(output).data<T>();
    // Of a vector, the classes are the rows.
    const int64_t classes = run.input(x_input).shape().dim(-1);
    ForEachPackOnDevice<T>(run, "label_smooth", run.input(x_input).element_count(), classes,
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
  const int gradient = context.InputIndex("Out@GRAD");
  const int output = context.OutputIndex("X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* dout = run.input(gradient).data<T>();
    T* dx = run.output(output).data<T>();
    const int64_t count = run.input(gradient).element_count();
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
