// CUDA kernels of bias_dropout_residual_layer_norm and its gradient;
// bias_dropout_residual_layer_norm.cc has the formulas.
#include <memory>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/dropout_settings.h"
#include "operators/nn/normalization/cuda_dropout.cuh"
#include "operators/nn/normalization/cuda_layer_norm.cuh"
#include "operators/nn/normalization/layer_norm_arguments.h"

namespace skiff {
namespace {

NormRows RowsOf(const Shape& shape) { return NormRows(shape, shape.rank() - 1); }

// The arrays of a run; those of optional arguments may be nullptr. The sums may be x or the
// residuals. Sums that nobody reads lie for a while where Y will. Half can't hold the sums: there,
// each pass adds them up again, and the last one stores them.
template <typename T>
struct SumAndNormalize {
  using Wide = WideType<T>;

  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    if (!kIsHalf<T> || mask != nullptr) {
      line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
        const CudaDropped<kCount> dropped = dropout.template Of<kCount>(at);
        if constexpr (!kIsHalf<T>) {
          StoreValues(SumAt<kCount>(j, at, dropped), norm.is_aligned, sums + at);
        }
        if (mask == nullptr) return;
#pragma unroll
        for (int k = 0; k < kCount; ++k) mask[at + k] = dropped.at[k] ? 0 : 1;
      });
    }
    if constexpr (kIsHalf<T>) {
      const auto load = [&]<int kCount>(int64_t j, int64_t at) {
        return SumAt<kCount>(j, at, DroppedAt<kCount>(at));
      };
      const auto keep = [&](int64_t at, const auto& of_thread) {
        if (sums != nullptr) StoreValues(of_thread, norm.is_aligned, sums + at);
      };
      norm.Normalize(group, line, load, keep, y);
    } else {
      norm.Normalize(group, line, sums, y);
    }
  }

  template <int kCount>
  __device__ CudaValues<Wide, kCount> SumAt(int64_t j, int64_t at,
                                            const CudaDropped<kCount>& dropped) const {
    CudaValues<Wide, kCount> values = LoadValues<kCount>(x + at, norm.is_aligned);
    if (bias != nullptr) {
      const CudaValues<Wide, kCount> biases = LoadValues<kCount>(bias + j, norm.is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) values.at[k] += biases.at[k];
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      values.at[k] = dropped.at[k] ? Wide{0} : values.at[k] * scale;
    }
    if (residual != nullptr) {
      const CudaValues<Wide, kCount> residuals = LoadValues<kCount>(residual + at, norm.is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) values.at[k] += residuals.at[k];
    }
    return values;
  }

  // What the thread has drawn, from the mask if there is one.
  template <int kCount>
  __device__ CudaDropped<kCount> DroppedAt(int64_t at) const {
    if (mask == nullptr) return dropout.template Of<kCount>(at);
    CudaDropped<kCount> dropped;
#pragma unroll
    for (int k = 0; k < kCount; ++k) dropped.at[k] = mask[at + k] == 0;
    return dropped;
  }

  CudaLayerNorm<T> norm;
  CudaDropout dropout;
  Wide scale;  // of what is kept
  const T* x;
  const T* bias;
  const T* residual;
  T* sums;  // nullptr: half that nobody reads
  T* y;
  uint8_t* mask;
};

// Each gradient may be nullptr, or dy.
template <typename T>
struct DifferentiateSums {
  using Wide = WideType<T>;

  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    norm.Differentiate(
        group, line, sums, dy, [&]<int kCount>(int64_t at, CudaValues<Wide, kCount> gradients) {
          if (more != nullptr) {
            const CudaValues<Wide, kCount> others = LoadValues<kCount>(more + at, norm.is_aligned);
#pragma unroll
            for (int k = 0; k < kCount; ++k) gradients.at[k] += others.at[k];
          }
          if (dresidual != nullptr) StoreValues(gradients, norm.is_aligned, dresidual + at);
          if (dx == nullptr && summed == nullptr) return;
#pragma unroll
          for (int k = 0; k < kCount; ++k) {
            const bool is_dropped = mask != nullptr && mask[at + k] == 0;
            gradients.at[k] = is_dropped ? Wide{0} : gradients.at[k] * scale;
          }
          if (dx != nullptr) StoreValues(gradients, norm.is_aligned, dx + at);
          if (summed != nullptr) StoreValues(gradients, norm.is_aligned, summed + at);
        });
  }

  CudaLayerNormGrad<T> norm;
  Wide scale;
  const T* sums;
  const T* dy;
  const T* more;        // of the gradient of Sum
  const uint8_t* mask;  // nullptr: nothing was dropped
  T* dresidual;
  T* dx;
  Wide* summed;  // the same as dx, not rounded
};

// dbias: the sum of dx over rows.
template <typename T>
struct BiasGradient {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    *carry += static_cast<double>(dx[place]);
  }
  __device__ void Finish(int64_t column, Carry sum) const {
    dbias[column] = Rounded<T>(static_cast<WideType<T>>(sum));
  }

  const WideType<T>* dx;
  T* dbias;
};

template <typename T>
std::unique_ptr<Kernel> PrepareBiasDropoutResidualLayerNorm(PrepareContext& context) {
  const DropoutSettings settings = DropoutSettingsOf(context);
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> x(context, "X");
  const In<T> bias(context, "Bias");
  const In<T> residual(context, "Residual");
  using Wide = WideType<T>;
  const In<Wide> scale(context, "LnScale");
  const In<Wide> shift(context, "LnBias");
  const Out<T> y(context, "Y");
  const Out<T> sum(context, "Sum");
  const Out<uint8_t> mask(context, "Mask");
  const Out<Wide> mean(context, "Mean");
  const Out<Wide> variance(context, "Variance");
  return MakeRowsKernel([=](const KernelContext& run) {
    const NormRows rows = RowsOf(x.shape(run));
    T* sums = sum.is_there() || kIsHalf<T> ? sum(run) : y(run);
    const CudaLayerNorm<T> norm{
        .epsilon = epsilon,
        .scale = scale(run),
        .bias = shift(run),
        .means = mean(run),
        .variances = variance(run),
        .is_aligned = ArePacksAligned(x(run), bias(run), residual(run), scale(run), shift(run),
                                      sums, y(run))};
    ForEachLineOnDevice<T>(run, "bias_dropout_residual_layer_norm",
                           {.outer = rows.count(), .length = rows.size},
                           SumAndNormalize<T>{.norm = norm,
                                              .dropout = CudaDropout(settings, run),
                                              .scale = static_cast<Wide>(settings.scale()),
                                              .x = x(run),
                                              .bias = bias(run),
                                              .residual = residual(run),
                                              .sums = sums,
                                              .y = y(run),
                                              .mask = mask(run)});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareBiasDropoutResidualLayerNormGrad(PrepareContext& context) {
  const DropoutSettings dropout(DropoutSettingsOf(context));
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> sum(context, "Sum");
  const In<uint8_t> mask(context, "Mask");
  using Wide = WideType<T>;
  const In<Wide> scale(context, "LnScale");
  const In<Wide> mean(context, "Mean");
  const In<Wide> variance(context, "Variance");
  const In<T> y_gradient(context, "Y@GRAD");
  const In<T> sum_gradient(context, "Sum@GRAD");
  const Out<T> x_gradient(context, "X@GRAD");
  const Out<T> bias_gradient(context, "Bias@GRAD");
  const Out<T> residual_gradient(context, "Residual@GRAD");
  const Out<Wide> scale_gradient(context, "LnScale@GRAD");
  const Out<Wide> shift_gradient(context, "LnBias@GRAD");
  const CudaFold<CudaLayerNormParameters<T>> parameters(context,
                                                        context.Input("Sum").shape.element_count());
  const CudaFold<BiasGradient<T>> biases(context, context.Input("Sum").shape.element_count());
  const int slopes_memory = context.RequestWorkspace(RowsOf(context.Input("Sum").shape).count() *
                                                     static_cast<int64_t>(sizeof(Wide)));
  int summed_memory = -1;  // X@GRAD for Bias@GRAD, if it is absent or half
  const bool reads_mask = dropout.draws() || dropout.drops_all();
  SKIFF_ENFORCE(mask.is_there() || !reads_mask, kInvalidArgument, context.op().type,
                ": Mask is missing, expected that of the forward op");
  if (bias_gradient.is_there() && (!x_gradient.is_there() || kIsHalf<T>)) {
    summed_memory = context.RequestWorkspace(context.Input("Sum").shape.element_count() *
                                             static_cast<int64_t>(sizeof(Wide)));
  }
  return MakeRowsKernel([=](const KernelContext& run) {
    const char* what = "bias_dropout_residual_layer_norm_grad";
    const NormRows rows = RowsOf(sum.shape(run));
    const CudaFoldView columns(rows.count(), rows.size);
    const T* sums = sum(run);
    const T* dy = y_gradient(run);
    T* dx = x_gradient(run);
    Wide* summed = summed_memory < 0 ? nullptr : static_cast<Wide*>(run.workspace(summed_memory));
    const CudaLayerNormGrad<T> norm{
        .size = rows.size,
        .epsilon = epsilon,
        .scale = scale(run),
        .means = mean(run),
        .variances = variance(run),
        .is_aligned =
            ArePacksAligned(sums, dy, scale(run), sum_gradient(run), residual_gradient(run), dx)};
    // Before the other gradients, which may take the place of Y@GRAD.
    if (scale_gradient.is_there() || shift_gradient.is_there()) {
      Wide* slopes = static_cast<Wide*>(run.workspace(slopes_memory));
      ForEachOnDevice(run, what, rows.count(), CudaLayerNormSlopes<T>{norm, sums, slopes});
      parameters.Run(run, what, columns,
                     {.x = sums,
                      .dy = dy,
                      .means = norm.means,
                      .slopes = slopes,
                      .dscale = scale_gradient(run),
                      .dbias = shift_gradient(run)});
    }
    if (!residual_gradient.is_there() && !x_gradient.is_there() && !bias_gradient.is_there())
      return;
    ForEachLineOnDevice<T>(run, what, {.outer = rows.count(), .length = rows.size},
                           DifferentiateSums<T>{.norm = norm,
                                                .scale = static_cast<Wide>(dropout.scale()),
                                                .sums = sums,
                                                .dy = dy,
                                                .more = sum_gradient(run),
                                                .mask = reads_mask ? mask(run) : nullptr,
                                                .dresidual = residual_gradient(run),
                                                .dx = dx,
                                                .summed = summed});
    if (!bias_gradient.is_there()) return;
    if constexpr (!kIsHalf<T>) {
      if (summed == nullptr) summed = dx;
    }
    biases.Run(run, what, columns, {summed, bias_gradient(run)});
  });
}

}  // namespace

void RegisterBiasDropoutResidualLayerNormCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "bias_dropout_residual_layer_norm",
                      [=]<typename T>(PrepareContext& context) {
                        return PrepareBiasDropoutResidualLayerNorm<T>(context);
                      });
  AddCudaFloatKernels(registry, "bias_dropout_residual_layer_norm_grad",
                      [=]<typename T>(PrepareContext& context) {
                        return PrepareBiasDropoutResidualLayerNormGrad<T>(context);
                      });
}

}  // namespace skiff
