// CUDA kernels of rms_norm and its gradient; rms_norm.cc has the formulas. Sums are float64.
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/common/extreme_square.h"
#include "operators/nn/normalization/layer_norm_arguments.h"

namespace skiff {
namespace {

// Whether coefficients of type Wide may be unable to hold what follows from the slope.
template <typename Wide>
__device__ bool IsExtremeRmsSlope(double slope) {
  return std::is_same_v<Wide, float> && IsExtremeSquare(1 / (slope * slope));
}

// y may be x.
template <typename T>
struct NormalizeRmsRows {
  using Wide = WideType<T>;

  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    double squares = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      const CudaValues<Wide, kCount> values = LoadValues<kCount>(x + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const auto value = static_cast<double>(values.at[k]);
        squares += value * value;
      }
    });
    const auto count = static_cast<double>(line.length > 0 ? line.length : 1);
    const double mean_square = group.Reduce(squares, JoinBySum{}) / count;
    if (group.lane == 0 && line.exists && mean_squares != nullptr)
      mean_squares[line.index] = static_cast<Wide>(mean_square);
    const double exact_slope = 1 / std::sqrt(mean_square + epsilon);
    const bool is_extreme = IsExtremeRmsSlope<Wide>(exact_slope);
    const Wide slope = static_cast<Wide>(exact_slope);
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      CudaValues<Wide, kCount> values = LoadValues<kCount>(x + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        values.at[k] = is_extreme
                           ? static_cast<Wide>(static_cast<double>(values.at[k]) * exact_slope)
                           : values.at[k] * slope;
      }
      if (scale != nullptr) {
        const CudaValues<Wide, kCount> scales = LoadValues<kCount>(scale + j, is_aligned);
#pragma unroll
        for (int k = 0; k < kCount; ++k) values.at[k] *= scales.at[k];
      }
      StoreValues(values, is_aligned, y + at);
    });
  }

  double epsilon;
  const T* x;
  const Wide* scale;  // may be nullptr
  T* y;
  Wide* mean_squares;  // may be nullptr
  bool is_aligned;     // all arrays of rows
};

// Sets slopes[row] = 1 / sqrt(mean square + epsilon).
template <typename T>
struct RmsNormSlopes {
  __device__ void operator()(int64_t row) const {
    double square = static_cast<double>(mean_squares[row]) + epsilon;
    if (std::is_same_v<WideType<T>, float> && IsExtremeSquare(square)) {
      // Float may hold no such number.
      const T* from = x + row * size;
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) {
        const auto value = static_cast<double>(Widened(from[i]));
        sum += value * value;
      }
      square = sum / static_cast<double>(size > 0 ? size : 1) + epsilon;
    }
    slopes[row] = 1 / std::sqrt(square);
  }

  int64_t size;  // of a row
  double epsilon;
  const T* x;
  const WideType<T>* mean_squares;
  double* slopes;
};

// The gradient of Scale: a sum over rows.
template <typename T>
struct RmsNormScaleGradient {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t row, Carry* carry) const {
    const auto gradient = static_cast<double>(Widened(dy[place]));
    *carry += gradient * (static_cast<double>(Widened(x[place])) * slopes[row]);
  }
  __device__ void Finish(int64_t column, Carry total) const {
    dscale[column] = static_cast<WideType<T>>(total);
  }

  const T* x;
  const T* dy;
  const double* slopes;
  WideType<T>* dscale;
};

// dx may be dy.
template <typename T>
struct DifferentiateRmsRows {
  using Wide = WideType<T>;

  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    const double h = line.exists ? slopes[line.index] : 1;
    const bool is_extreme = IsExtremeRmsSlope<Wide>(h);
    double product = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      const CudaValues<Wide, kCount> values = LoadValues<kCount>(x + at, is_aligned);
      const CudaValues<Wide, kCount> g = Scaled<kCount>(j, at);
#pragma unroll
      for (int k = 0; k < kCount; ++k)
        product += static_cast<double>(g.at[k]) * static_cast<double>(values.at[k]);
    });
    const auto count = static_cast<double>(line.length > 0 ? line.length : 1);
    const double mean_product = group.Reduce(product, JoinBySum{}) / count;
    // Of a single element, all but the part of epsilon cancels, and the general formula would leave
    // rounding errors.
    const double exact_slope = line.length == 1 ? h * h * h * epsilon : h;
    const double exact_factor = line.length == 1 ? 0 : h * h * h * mean_product;
    const Wide slope = static_cast<Wide>(exact_slope);
    const Wide factor = static_cast<Wide>(exact_factor);
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      const CudaValues<Wide, kCount> values = LoadValues<kCount>(x + at, is_aligned);
      CudaValues<Wide, kCount> g = Scaled<kCount>(j, at);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        g.at[k] = is_extreme ? static_cast<Wide>(static_cast<double>(g.at[k]) * exact_slope -
                                                 static_cast<double>(values.at[k]) * exact_factor)
                             : g.at[k] * slope - values.at[k] * factor;
      }
      StoreValues(g, is_aligned, dx + at);
    });
  }

  template <int kCount>
  __device__ CudaValues<Wide, kCount> Scaled(int64_t j, int64_t at) const {
    CudaValues<Wide, kCount> g = LoadValues<kCount>(dy + at, is_aligned);
    if (scale != nullptr) {
      const CudaValues<Wide, kCount> scales = LoadValues<kCount>(scale + j, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) g.at[k] *= scales.at[k];
    }
    return g;
  }

  double epsilon;
  const T* x;
  const T* dy;
  const Wide* scale;  // may be nullptr
  const double* slopes;
  T* dx;
  bool is_aligned;  // all arrays of rows
};

template <typename T>
std::unique_ptr<Kernel> PrepareRmsNorm(PrepareContext& context) {
  using Wide = WideType<T>;
  const int64_t axis = context.IntAttr("begin_norm_axis");
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> x(context, "X");
  const In<Wide> scale(context, "Scale");
  const Out<T> y(context, "Y");
  const Out<Wide> mean_square(context, "MeanSquare");
  return MakeRowsKernel([=](const KernelContext& run) {
    const NormRows rows(x.shape(run), axis);
    ForEachLineOnDevice<T>(
        run, "rms_norm", {.outer = rows.count(), .length = rows.size},
        NormalizeRmsRows<T>{.epsilon = epsilon,
                            .x = x(run),
                            .scale = scale(run),
                            .y = y(run),
                            .mean_squares = mean_square(run),
                            .is_aligned = ArePacksAligned(x(run), scale(run), y(run))});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareRmsNormGrad(PrepareContext& context) {
  using Wide = WideType<T>;
  const int64_t axis = context.IntAttr("begin_norm_axis");
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> x(context, "X");
  const In<Wide> scale(context, "Scale");
  const In<Wide> mean_square(context, "MeanSquare");
  const In<T> y_gradient(context, "Y@GRAD");
  const Out<T> x_gradient(context, "X@GRAD");
  const Out<Wide> scale_gradient(context, "Scale@GRAD");
  const CudaFold<RmsNormScaleGradient<T>> fold(context, context.Input("X").shape.element_count());
  const int memory = context.RequestWorkspace(NormRows(context.Input("X").shape, axis).count() *
                                              static_cast<int64_t>(sizeof(double)));
  return MakeRowsKernel([=](const KernelContext& run) {
    const NormRows rows(x.shape(run), axis);
    const T* dy = y_gradient(run);
    T* dx = x_gradient(run);
    auto* const slopes = static_cast<double*>(run.workspace(memory));
    ForEachOnDevice(run, "rms_norm_grad", rows.count(),
                    RmsNormSlopes<T>{.size = rows.size,
                                     .epsilon = epsilon,
                                     .x = x(run),
                                     .mean_squares = mean_square(run),
                                     .slopes = slopes});
    // Before X@GRAD, which may take the place of Y@GRAD.
    if (scale_gradient.is_there()) {
      fold.Run(run, "rms_norm_grad", CudaFoldView(rows.count(), rows.size),
               {.x = x(run), .dy = dy, .slopes = slopes, .dscale = scale_gradient(run)});
    }
    if (dx == nullptr) return;
    ForEachLineOnDevice<T>(
        run, "rms_norm_grad", {.outer = rows.count(), .length = rows.size},
        DifferentiateRmsRows<T>{.epsilon = epsilon,
                                .x = x(run),
                                .dy = dy,
                                .scale = scale(run),
                                .slopes = slopes,
                                .dx = dx,
                                .is_aligned = ArePacksAligned(x(run), dy, scale(run), dx)});
  });
}

}  // namespace

void RegisterRmsNormCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "rms_norm", [=]<typename T>(PrepareContext& context) {
    return PrepareRmsNorm<T>(context);
  });
  AddCudaFloatKernels(registry, "rms_norm_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareRmsNormGrad<T>(context);
  });
}

}  // namespace skiff
