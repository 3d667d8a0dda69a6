// CUDA kernels of softmax and log_softmax, and of their gradients.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string_view>

#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/math/kernels/softmax_definition.h"

namespace skiff {
namespace {

// y may be x: a thread reads no element that another one writes.
template <typename T, bool kIsLog>
struct SoftmaxOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    const SoftmaxTotal<T> total = SoftmaxTotalOf(group, line, x, is_aligned);
    const T scale = kIsLog ? std::log(total.sum) : T{1} / total.sum;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      CudaValues<T, kCount> values = LoadValues<kCount>(x + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const T distance = values.at[k] - total.max;
        values.at[k] = kIsLog ? distance - scale : std::exp(distance) * scale;
      }
      StoreValues(values, is_aligned, y + at);
    });
  }

  const T* x;
  T* y;
  bool is_aligned;
};

// dx may be y or dy.
template <typename T, bool kIsLog>
struct SoftmaxGradOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    T sum = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      const CudaValues<T, kCount> gradients = LoadValues<kCount>(dy + at, is_aligned);
      if constexpr (kIsLog) {
#pragma unroll
        for (int k = 0; k < kCount; ++k) sum += gradients.at[k];
      } else {
        const CudaValues<T, kCount> values = LoadValues<kCount>(y + at, is_aligned);
#pragma unroll
        for (int k = 0; k < kCount; ++k) sum += values.at[k] * gradients.at[k];
      }
    });
    sum = group.Reduce(sum, JoinBySum{});
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      const CudaValues<T, kCount> values = LoadValues<kCount>(y + at, is_aligned);
      CudaValues<T, kCount> gradients = LoadValues<kCount>(dy + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        gradients.at[k] = kIsLog ? gradients.at[k] - std::exp(values.at[k]) * sum
                                 : (gradients.at[k] - sum) * values.at[k];
      }
      StoreValues(gradients, is_aligned, dx + at);
    });
  }

  const T* y;
  const T* dy;
  T* dx;
  bool is_aligned;
};

template <typename T, bool kIsLog>
std::unique_ptr<Kernel> PrepareCudaSoftmax(PrepareContext& context) {
  const In<T> x(context, "X");
  const Out<T> y(context, "Out");
  const int axis = SoftmaxAxis(context, context.Input("X").shape);
  return MakeRowsKernel([=](const KernelContext& run) {
    ForEachLineOnDevice<T>(
        run, "softmax", ExtentsOfAxis(x.shape(run), axis),
        SoftmaxOfLines<T, kIsLog>{x(run), y(run), ArePacksAligned(x(run), y(run))});
  });
}

template <typename T, bool kIsLog>
std::unique_ptr<Kernel> PrepareCudaSoftmaxGrad(PrepareContext& context) {
  const In<T> out(context, "Out");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const int axis = SoftmaxAxis(context, context.Input("Out").shape);
  return MakeRowsKernel([=](const KernelContext& run) {
    ForEachLineOnDevice<T>(
        run, "softmax_grad", ExtentsOfAxis(out.shape(run), axis),
        SoftmaxGradOfLines<T, kIsLog>{out(run), gradient(run), dx(run),
                                      ArePacksAligned(out(run), gradient(run), dx(run))});
  });
}

template <bool kIsLog>
void AddCudaSoftmaxKernels(OpRegistry& registry, std::string_view type) {
  AddCudaKernels<float, double>(registry, type, [=]<typename T>(PrepareContext& context) {
    return PrepareCudaSoftmax<T, kIsLog>(context);
  });
  AddCudaKernels<float, double>(registry, StrCat(type, "_grad"),
                                [=]<typename T>(PrepareContext& context) {
                                  return PrepareCudaSoftmaxGrad<T, kIsLog>(context);
                                });
}

}  // namespace
}  // namespace skiff
