// The work of layer_norm and its gradient on a row on CUDA, for ops that do more with the row, and
// the sums over rows. Statistics and sums are float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/common/extreme_square.h"

namespace skiff {

// The arguments of layer_norm besides X and Y, for elements of T. All arrays may be nullptr.
template <typename T>
struct CudaLayerNorm {
  using Wide = WideType<T>;

  // Normalizes a row, each thread the elements of its share. load.template operator()<kCount>(j,
  // at), which is called three times, returns elements [j, j + kCount), whose first is at `at`;
  // keep(at, elements) is called with them before anything is written to y, which may be where
  // `load` reads.
  template <class Group, class Load, class Keep>
  __device__ void Normalize(const Group& group, const CudaLine& line, const Load& load,
                            const Keep& keep, T* y) const {
    double sum = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      const CudaValues<Wide, kCount> values = load.template operator()<kCount>(j, at);
#pragma unroll
      for (int k = 0; k < kCount; ++k) sum += static_cast<double>(values.at[k]);
    });
    const auto count = static_cast<double>(line.length > 0 ? line.length : 1);
    const double exact_mean = group.Reduce(sum, JoinBySum{}) / count;
    double squares = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      const CudaValues<Wide, kCount> values = load.template operator()<kCount>(j, at);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const double distance = static_cast<double>(values.at[k]) - exact_mean;
        squares += distance * distance;
      }
    });
    const double variance = group.Reduce(squares, JoinBySum{}) / count;
    const Wide mean = static_cast<Wide>(exact_mean);
    const Wide slope = static_cast<Wide>(1 / std::sqrt(variance + epsilon));
    if (group.lane == 0 && line.exists) {
      if (means != nullptr) means[line.index] = mean;
      if (variances != nullptr) variances[line.index] = static_cast<Wide>(variance);
    }
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      CudaValues<Wide, kCount> values = load.template operator()<kCount>(j, at);
      keep(at, values);
#pragma unroll
      for (int k = 0; k < kCount; ++k) values.at[k] = (values.at[k] - mean) * slope;
      if (scale != nullptr) {
        const CudaValues<Wide, kCount> scales = LoadValues<kCount>(scale + j, is_aligned);
#pragma unroll
        for (int k = 0; k < kCount; ++k) values.at[k] *= scales.at[k];
      }
      if (bias != nullptr) {
        const CudaValues<Wide, kCount> biases = LoadValues<kCount>(bias + j, is_aligned);
#pragma unroll
        for (int k = 0; k < kCount; ++k) values.at[k] += biases.at[k];
      }
      StoreValues(values, is_aligned, y + at);
    });
  }

  // The same of the elements of x, which may be y. Reads after the first pass come from the cache.
  template <class Group>
  __device__ void Normalize(const Group& group, const CudaLine& line, const T* x, T* y) const {
    const auto load = [&]<int kCount>(int64_t, int64_t at) {
      return LoadValues<kCount>(x + at, is_aligned);
    };
    Normalize(
        group, line, load, [](int64_t, const auto&) {}, y);
  }

  double epsilon;
  const Wide* scale;
  const Wide* bias;
  Wide* means;
  Wide* variances;
  bool is_aligned;  // with X and Y
};

// The sums of g and of g · (x - mean) over a row, where g = dy · scale.
struct CudaNormSums {
  double sum;
  double product;

  __device__ friend CudaNormSums operator+(const CudaNormSums& a, const CudaNormSums& b) {
    return {a.sum + b.sum, a.product + b.product};
  }
};

// The mean of a row and 1 / sqrt(variance + epsilon): numbers of type T, unless the variance is
// extreme (extreme_square.h).
struct CudaRowStatistics {
  double mean;
  double slope;
  bool is_extreme;
};

// The arguments of layer_norm_grad besides the gradients.
template <typename T>
struct CudaLayerNormGrad {
  using Wide = WideType<T>;

  // `from`: the row's elements.
  __device__ CudaRowStatistics StatisticsOf(int64_t row, const T* from) const {
    // A single element is its row's mean: Y doesn't depend on it, and the general formula would
    // leave rounding errors.
    if (size == 1) return {static_cast<double>(means[row]), 0, false};
    const double variance = static_cast<double>(variances[row]) + epsilon;
    const bool is_extreme = std::is_same_v<Wide, float> && IsExtremeSquare(variance);
    // NaN stays.
    if (!is_extreme || std::isnan(variance)) {
      return {static_cast<double>(means[row]),
              static_cast<double>(static_cast<Wide>(1 / std::sqrt(variance))), false};
    }
    // Float may hold no such variance. Each thread that asks computes it again.
    const auto count = static_cast<double>(size > 0 ? size : 1);
    double mean = 0;
    for (int64_t i = 0; i < size; ++i) mean += static_cast<double>(Widened(from[i])) / count;
    double squares = 0;
    for (int64_t i = 0; i < size; ++i) {
      const double distance = static_cast<double>(Widened(from[i])) - mean;
      squares += distance * distance;
    }
    return {mean, 1 / std::sqrt(squares / count + epsilon), true};
  }

  // Computes the gradient of a row of X: calls use.template operator()<kCount>(place, values) for
  // each share of a thread.
  template <class Group, class Use>
  __device__ void Differentiate(const Group& group, const CudaLine& line, const T* x, const T* dy,
                                const Use& use) const {
    const CudaRowStatistics row =
        line.exists ? StatisticsOf(line.index, x + line.start) : CudaRowStatistics{0, 0, false};
    // dx may be x, which no thread writes before all have passed the sums below.
    const Wide mean = static_cast<Wide>(row.mean);
    const Wide slope = static_cast<Wide>(row.slope);
    CudaNormSums sums{0, 0};
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      const CudaValues<Wide, kCount> values = LoadValues<kCount>(x + at, is_aligned);
      const CudaValues<Wide, kCount> g = Scaled<kCount>(dy, j, at);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        sums.sum += static_cast<double>(g.at[k]);
        const double distance = row.is_extreme ? static_cast<double>(values.at[k]) - row.mean
                                               : static_cast<double>(values.at[k] - mean);
        sums.product += static_cast<double>(g.at[k]) * distance;
      }
    });
    sums = group.Reduce(sums, JoinBySum{});
    const auto count = static_cast<double>(size > 0 ? size : 1);
    const double h = row.slope;
    const double exact_factor = h * h * h * sums.product / count;
    const double exact_offset = h * sums.sum / count;
    const Wide factor = static_cast<Wide>(exact_factor);
    const Wide offset = static_cast<Wide>(exact_offset);
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      const CudaValues<Wide, kCount> values = LoadValues<kCount>(x + at, is_aligned);
      CudaValues<Wide, kCount> g = Scaled<kCount>(dy, j, at);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (row.is_extreme) {
          const double distance = static_cast<double>(values.at[k]) - row.mean;
          g.at[k] = static_cast<Wide>(static_cast<double>(g.at[k]) * h - distance * exact_factor -
                                      exact_offset);
        } else {
          g.at[k] = g.at[k] * slope - (values.at[k] - mean) * factor - offset;
        }
      }
      use.template operator()<kCount>(at, g);
    });
  }

  template <int kCount>
  __device__ CudaValues<Wide, kCount> Scaled(const T* dy, int64_t j, int64_t at) const {
    CudaValues<Wide, kCount> g = LoadValues<kCount>(dy + at, is_aligned);
    if (scale != nullptr) {
      const CudaValues<Wide, kCount> scales = LoadValues<kCount>(scale + j, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) g.at[k] *= scales.at[k];
    }
    return g;
  }

  int64_t size;  // of a row
  double epsilon;
  const Wide* scale;  // may be nullptr
  const Wide* means;
  const Wide* variances;
  bool is_aligned;  // with all images
};

// Sets slopes[row] for the rule below.
template <typename T>
struct CudaLayerNormSlopes {
  __device__ void operator()(int64_t row) const {
    slopes[row] = static_cast<WideType<T>>(norm.StatisticsOf(row, x + row * norm.size).slope);
  }

  CudaLayerNormGrad<T> norm;
  const T* x;
  WideType<T>* slopes;
};

// The gradients of Scale and Bias, which may be nullptr: sums over rows.
template <typename T>
struct CudaLayerNormParameters {
  using Carry = CudaNormSums;
  static __device__ Carry Identity() { return {0, 0}; }
  static __device__ Carry Join(const Carry& a, const Carry& b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t row, Carry* carry) const {
    const WideType<T> gradient = Widened(dy[place]);
    const WideType<T> value = Widened(x[place]);
    carry->sum += static_cast<double>(gradient);
    carry->product += static_cast<double>(gradient * ((value - means[row]) * slopes[row]));
  }
  __device__ void Finish(int64_t column, const Carry& total) const {
    if (dscale != nullptr) dscale[column] = static_cast<WideType<T>>(total.product);
    if (dbias != nullptr) dbias[column] = static_cast<WideType<T>>(total.sum);
  }

  const T* x;
  const T* dy;
  const WideType<T>* means;
  const WideType<T>* slopes;
  WideType<T>* dscale;
  WideType<T>* dbias;
};

}  // namespace skiff
