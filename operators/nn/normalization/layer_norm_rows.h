// The work of layer_norm and its gradient on a row, for ops that do more with the row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "operators/common/extreme_square.h"
#include "operators/nn/normalization/row_norm.h"

namespace skiff {

// The arguments of layer_norm besides X and Y. All may be nullptr.
template <typename T>
struct LayerNormRows {
  int64_t size = 0;  // of a row
  double epsilon = 0;
  const T* scale = nullptr;
  const T* bias = nullptr;
  T* means = nullptr;
  T* variances = nullptr;

  // Normalizes a row. y may be x.
  void Normalize(int64_t row, const T* x, T* y) const {
    const RunMoments moments = MomentsOf(x, size, epsilon);
    const double variance = moments.squares / static_cast<double>(std::max<int64_t>(size, 1));
    const T mean = static_cast<T>(moments.mean);
    if (means != nullptr) means[row] = mean;
    if (variances != nullptr) variances[row] = static_cast<T>(variance);
    const double slope = 1 / std::sqrt(variance + epsilon);
    if (IsExtremeSquare(variance + epsilon)) {
      NormalizeRow(x, size, moments.mean, slope, scale, bias, y);
    } else {
      NormalizeRow(x, size, mean, static_cast<T>(slope), scale, bias, y);
    }
  }
};

// The arguments of layer_norm_grad besides the gradients; `scale` may be nullptr.
template <typename T>
struct LayerNormGradRows {
  int64_t size = 0;  // of a row
  double epsilon = 0;
  const T* scale = nullptr;
  const T* means = nullptr;
  const T* variances = nullptr;

  // Adds the gradients of Scale and Bias that come from a row.
  void AddParameters(int64_t row, const T* x, const T* dy, T* scale_sums, T* bias_sums) const {
    WithStatistics(row, x, [&](auto mean, auto slope) {
      AddParameterGradients(x, dy, size, mean, slope, scale_sums, bias_sums);
    });
  }

  // Computes the gradient of a row of X. dx may be x or dy.
  void Input(int64_t row, const T* x, const T* dy, T* dx) const {
    WithStatistics(row, x, [&](auto mean, auto slope) {
      using C = decltype(mean);
      const RunGradientSums sums = GradientSumsOf(x, dy, scale, size, mean);
      const auto count = static_cast<double>(std::max<int64_t>(size, 1));
      const auto h = static_cast<double>(slope);
      GradientRow(x, dy, scale, size,
                  RunGradient<C>{.mean = mean,
                                 .slope = slope,
                                 .factor = static_cast<C>(h * h * h * sums.product / count),
                                 .offset = static_cast<C>(h * sums.sum / count)},
                  dx);
    });
  }

 private:
  // Calls use(mean, 1 / sqrt(variance + epsilon)) with numbers of type T, or with doubles for a row
  // whose variance T may be unable to hold.
  template <typename Use>
  void WithStatistics(int64_t row, const T* x, const Use& use) const {
    // A single element is its row's mean: Y doesn't depend on it, and the general formula would
    // leave rounding errors.
    if (size == 1) return use(means[row], T{0});
    const double variance = static_cast<double>(variances[row]) + epsilon;
    if (!IsExtremeSquare(variance)) {
      return use(means[row], static_cast<T>(1 / std::sqrt(variance)));
    }
    const RunMoments moments = MomentsOf(x, size, epsilon);
    const auto count = static_cast<double>(std::max<int64_t>(size, 1));
    use(moments.mean, 1 / std::sqrt(moments.squares / count + epsilon));
  }
};

}  // namespace skiff
