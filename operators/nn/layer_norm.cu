// CUDA kernels of layer_norm and its gradient; layer_norm.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/nn/normalization/cuda_layer_norm.cuh"
#include "operators/nn/normalization/layer_norm_arguments.h"

namespace skiff {
namespace {

template <typename T>
struct NormalizeRows {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    norm.Normalize(group, line, x, y);
  }

  CudaLayerNorm<T> norm;
  const T* x;
  T* y;
};

// dx may be dy.
template <typename T>
struct DifferentiateRows {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    norm.Differentiate(
        group, line, x, dy,
        [&]<int kCount>(int64_t at, const CudaValues<WideType<T>, kCount>& gradients) {
          StoreValues(gradients, norm.is_aligned, dx + at);
        });
  }

  CudaLayerNormGrad<T> norm;
  const T* x;
  const T* dy;
  T* dx;
};

template <typename T>
std::unique_ptr<Kernel> PrepareLayerNorm(PrepareContext& context) {
  const int64_t axis = context.IntAttr("begin_norm_axis");
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> x(context, "X");
  using Wide = WideType<T>;
  const In<Wide> scale(context, "Scale");
  const In<Wide> bias(context, "Bias");
  const Out<T> y(context, "Y");
  const Out<Wide> mean(context, "Mean");
  const Out<Wide> variance(context, "Variance");
  return MakeRowsKernel([=](const KernelContext& run) {
    const NormRows rows(x.shape(run), axis);
    const CudaLayerNorm<T> norm{
        .epsilon = epsilon,
        .scale = scale(run),
        .bias = bias(run),
        .means = mean(run),
        .variances = variance(run),
        .is_aligned = ArePacksAligned(x(run), scale(run), bias(run), y(run))};
    ForEachLineOnDevice<T>(run, "layer_norm", {.outer = rows.count(), .length = rows.size},
                           NormalizeRows<T>{norm, x(run), y(run)});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareLayerNormGrad(PrepareContext& context) {
  const int64_t axis = context.IntAttr("begin_norm_axis");
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> x(context, "X");
  using Wide = WideType<T>;
  const In<Wide> scale(context, "Scale");
  const In<Wide> mean(context, "Mean");
  const In<Wide> variance(context, "Variance");
  const In<T> y_gradient(context, "Y@GRAD");
  const Out<T> x_gradient(context, "X@GRAD");
  const Out<Wide> scale_gradient(context, "Scale@GRAD");
  const Out<Wide> bias_gradient(context, "Bias@GRAD");
  const CudaFold<CudaLayerNormParameters<T>> parameters(context,
                                                        context.Input("X").shape.element_count());
  const int slopes_memory = context.RequestWorkspace(
      NormRows(context.Input("X").shape, axis).count() * static_cast<int64_t>(sizeof(Wide)));
  return MakeRowsKernel([=](const KernelContext& run) {
    const NormRows rows(x.shape(run), axis);
    const T* dy = y_gradient(run);
    T* dx = x_gradient(run);
    const CudaLayerNormGrad<T> norm{.size = rows.size,
                                    .epsilon = epsilon,
                                    .scale = scale(run),
                                    .means = mean(run),
                                    .variances = variance(run),
                                    .is_aligned = ArePacksAligned(x(run), dy, scale(run), dx)};
    // Before X@GRAD, which may take the place of Y@GRAD.
    if (scale_gradient.is_there() || bias_gradient.is_there()) {
      Wide* slopes = static_cast<Wide*>(run.workspace(slopes_memory));
      ForEachOnDevice(run, "layer_norm_grad", rows.count(),
                      CudaLayerNormSlopes<T>{norm, x(run), slopes});
      parameters.Run(run, "layer_norm_grad", CudaFoldView(rows.count(), rows.size),
                     {.x = x(run),
                      .dy = dy,
                      .means = norm.means,
                      .slopes = slopes,
                      .dscale = scale_gradient(run),
                      .dbias = bias_gradient(run)});
    }
    if (dx == nullptr) return;
    ForEachLineOnDevice<T>(run, "layer_norm_grad", {.outer = rows.count(), .length = rows.size},
                           DifferentiateRows<T>{norm, x(run), dy, dx});
  });
}

}  // namespace

void RegisterLayerNormCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "layer_norm", [=]<typename T>(PrepareContext& context) {
    return PrepareLayerNorm<T>(context);
  });
  AddCudaFloatKernels(registry, "layer_norm_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareLayerNormGrad<T>(context);
  });
}

}  // namespace skiff
