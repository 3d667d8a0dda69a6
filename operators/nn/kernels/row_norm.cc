// The loops of float32 are vectors with remainders in scalars, once per instruction set; those of
// float64 are plain. Sums over a run's elements, but for the pivot's, run in float32 vectors over a
// block of kBlock elements, as these hold twice as many elements, and then in float64: the block
// bounds the rounding error of float32, however long the run.
#include "operators/nn/kernels/row_norm.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

// The loops below are compiled once per instruction set that @highway leaves enabled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/kernels/row_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

// Adds two sums over a block to the totals. accumulate(offset, sum0, sum1) adds vectors, and
// accumulate_one(offset, &sum0, &sum1) single elements. There are two accumulators per sum, so that
// an addition needn't wait for the one before.
template <typename Accumulate, typename AccumulateOne>
HWY_INLINE void SumBlock(size_t count, double* total0, double* total1, const Accumulate& accumulate,
                         const AccumulateOne& accumulate_one) {
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  Vector first0 = hn::Zero(d);
  Vector first1 = hn::Zero(d);
  Vector second0 = hn::Zero(d);
  Vector second1 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    accumulate(i, first0, second0);
    accumulate(i + lanes, first1, second1);
  }
  if (i + lanes <= count) {
    accumulate(i, first0, second0);
    i += lanes;
  }
  *total0 += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(first0, first1))));
  *total1 += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(second0, second1))));
  for (; i < count; ++i) accumulate_one(i, total0, total1);
}

// Sums in float64, in which the largest float32 numbers don't overflow.
double SumOfFloats(const float* x, size_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    sum0 = hn::Add(sum0, hn::PromoteTo(d, hn::LoadU(half, x + i)));
    sum1 = hn::Add(sum1, hn::PromoteTo(d, hn::LoadU(half, x + i + lanes)));
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; i < count; ++i) sum += static_cast<double>(x[i]);
  return sum;
}

// Adds the sums of x - pivot and of its square.
void MomentsOfBlock(const float* HWY_RESTRICT x, size_t count, float pivot, double* sum,
                    double* squares) {
  const Floats d;
  const Vector pivots = hn::Set(d, pivot);
  SumBlock(
      count, sum, squares,
      [&](size_t i, Vector& first, Vector& second) HWY_ATTR {
        const Vector distance = hn::Sub(hn::LoadU(d, x + i), pivots);
        first = hn::Add(first, distance);
        second = hn::MulAdd(distance, distance, second);
      },
      [&](size_t i, double* first, double* second) {
        const double distance = static_cast<double>(x[i]) - static_cast<double>(pivot);
        *first += distance;
        *second += distance * distance;
      });
}

template <bool kHasScale>
HWY_INLINE void GradientSumsWith(const float* x, const float* dy, const float* scale, size_t count,
                                 float mean, double* sum, double* product) {
  const Floats d;
  const Vector means = hn::Set(d, mean);
  SumBlock(
      count, sum, product,
      [&](size_t i, Vector& first, Vector& second) HWY_ATTR {
        Vector gradient = hn::LoadU(d, dy + i);
        if (kHasScale) gradient = hn::Mul(gradient, hn::LoadU(d, scale + i));
        first = hn::Add(first, gradient);
        second = hn::MulAdd(gradient, hn::Sub(hn::LoadU(d, x + i), means), second);
      },
      [&](size_t i, double* first, double* second) {
        const double gradient = kHasScale ? static_cast<double>(dy[i]) * scale[i] : dy[i];
        *first += gradient;
        *second += gradient * (static_cast<double>(x[i]) - static_cast<double>(mean));
      });
}

void GradientSumsOfBlock(const float* x, const float* dy, const float* scale, size_t count,
                         float mean, double* sum, double* product) {
  if (scale != nullptr) {
    GradientSumsWith<true>(x, dy, scale, count, mean, sum, product);
  } else {
    GradientSumsWith<false>(x, dy, scale, count, mean, sum, product);
  }
}

void NormalizeFloats(const float* x, size_t count, float mean, float slope, float shift, float* y) {
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  const Vector means = hn::Set(d, mean);
  const Vector slopes = hn::Set(d, slope);
  const Vector shifts = hn::Set(d, shift);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Vector distance = hn::Sub(hn::LoadU(d, x + i), means);
    hn::StoreU(hn::MulAdd(distance, slopes, shifts), d, y + i);
  }
  for (; i < count; ++i) y[i] = (x[i] - mean) * slope + shift;
}

template <bool kHasScale, bool kHasBias>
HWY_INLINE void NormalizeRowWith(const float* x, size_t count, float mean, float slope,
                                 const float* scale, const float* bias, float* y) {
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  const Vector means = hn::Set(d, mean);
  const Vector slopes = hn::Set(d, slope);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Vector value = hn::Mul(hn::Sub(hn::LoadU(d, x + i), means), slopes);
    if (kHasScale) value = hn::Mul(value, hn::LoadU(d, scale + i));
    if (kHasBias) value = hn::Add(value, hn::LoadU(d, bias + i));
    hn::StoreU(value, d, y + i);
  }
  for (; i < count; ++i) {
    float value = (x[i] - mean) * slope;
    if (kHasScale) value *= scale[i];
    if (kHasBias) value += bias[i];
    y[i] = value;
  }
}

void NormalizeRowOfFloats(const float* x, size_t count, float mean, float slope, const float* scale,
                          const float* bias, float* y) {
  if (scale != nullptr && bias != nullptr) {
    NormalizeRowWith<true, true>(x, count, mean, slope, scale, bias, y);
  } else if (scale != nullptr) {
    NormalizeRowWith<true, false>(x, count, mean, slope, scale, bias, y);
  } else if (bias != nullptr) {
    NormalizeRowWith<false, true>(x, count, mean, slope, scale, bias, y);
  } else {
    NormalizeRowWith<false, false>(x, count, mean, slope, scale, bias, y);
  }
}

template <bool kHasScale>
HWY_INLINE void GradientRowWith(const float* x, const float* dy, const float* scale, size_t count,
                                const RunGradient<float>& gradient, float* dx) {
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  const Vector means = hn::Set(d, gradient.mean);
  const Vector slopes = hn::Set(d, gradient.slope);
  const Vector factors = hn::Set(d, gradient.factor);
  const Vector offsets = hn::Set(d, gradient.offset);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Vector slope = slopes;
    if (kHasScale) slope = hn::Mul(slope, hn::LoadU(d, scale + i));
    const Vector distance = hn::Sub(hn::LoadU(d, x + i), means);
    const Vector own = hn::MulSub(hn::LoadU(d, dy + i), slope, offsets);
    hn::StoreU(hn::NegMulAdd(distance, factors, own), d, dx + i);
  }
  for (; i < count; ++i) {
    const float slope = kHasScale ? gradient.slope * scale[i] : gradient.slope;
    dx[i] = dy[i] * slope - (x[i] - gradient.mean) * gradient.factor - gradient.offset;
  }
}

void GradientRowOfFloats(const float* x, const float* dy, const float* scale, size_t count,
                         const RunGradient<float>& gradient, float* dx) {
  if (scale != nullptr) {
    GradientRowWith<true>(x, dy, scale, count, gradient, dx);
  } else {
    GradientRowWith<false>(x, dy, scale, count, gradient, dx);
  }
}

void AddParameterGradientsOfFloats(const float* HWY_RESTRICT x, const float* HWY_RESTRICT dy,
                                   size_t count, float mean, float slope,
                                   float* HWY_RESTRICT scale_sums, float* HWY_RESTRICT bias_sums) {
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  const Vector means = hn::Set(d, mean);
  const Vector slopes = hn::Set(d, slope);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Vector gradient = hn::LoadU(d, dy + i);
    const Vector normal = hn::Mul(hn::Sub(hn::LoadU(d, x + i), means), slopes);
    hn::StoreU(hn::MulAdd(gradient, normal, hn::LoadU(d, scale_sums + i)), d, scale_sums + i);
    hn::StoreU(hn::Add(hn::LoadU(d, bias_sums + i), gradient), d, bias_sums + i);
  }
  for (; i < count; ++i) {
    scale_sums[i] += dy[i] * ((x[i] - mean) * slope);
    bias_sums[i] += dy[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(SumOfFloats);
HWY_EXPORT(MomentsOfBlock);
HWY_EXPORT(GradientSumsOfBlock);
HWY_EXPORT(NormalizeFloats);
HWY_EXPORT(NormalizeRowOfFloats);
HWY_EXPORT(GradientRowOfFloats);
HWY_EXPORT(AddParameterGradientsOfFloats);

// The number of elements that float32 vectors sum before the sum goes to float64.
constexpr int64_t kBlock = 4096;
// The number of elements whose mean is the pivot. They belong to the run, so the squares of
// distances from the pivot add up to at most (1 + count / kPivotElements) times those from the mean
// (2 times for shorter runs), but for the rounding of the pivot to float32. That bounds how many
// digits cancel.
constexpr int64_t kPivotElements = 256;

// Computes the moments in one pass over memory, from distances to a pivot: squares - sum² / count
// of the numbers themselves would cancel, and the mean isn't known before a pass.
RunMoments MomentsOfFloats(const float* x, int64_t count) {
  const int64_t first = std::min(count, kPivotElements);
  const double first_sum = HWY_DYNAMIC_DISPATCH(SumOfFloats)(x, static_cast<size_t>(first));
  const auto pivot = static_cast<float>(first_sum / static_cast<double>(first));
  double sum = 0;
  double squares = 0;
  for (int64_t i = 0; i < count; i += kBlock) {
    HWY_DYNAMIC_DISPATCH(MomentsOfBlock)
    (x + i, static_cast<size_t>(std::min(kBlock, count - i)), pivot, &sum, &squares);
  }
  const double shift = sum / static_cast<double>(count);
  // The difference can't be negative, but its rounding can.
  return {static_cast<double>(pivot) + shift, std::max(squares - sum * shift, 0.0)};
}

}  // namespace

template <typename T>
RunMoments MomentsOf(const T* x, int64_t count) {
  if (count == 0) return {};
  if constexpr (std::is_same_v<T, float>) {
    return MomentsOfFloats(x, count);
  } else {
    RunMoments moments;
    for (int64_t i = 0; i < count; ++i) moments.mean += x[i];
    moments.mean /= static_cast<double>(count);
    for (int64_t i = 0; i < count; ++i) {
      moments.squares += (x[i] - moments.mean) * (x[i] - moments.mean);
    }
    return moments;
  }
}

template <typename T>
RunGradientSums GradientSumsOf(const T* x, const T* dy, const T* scale, int64_t count, T mean) {
  RunGradientSums sums;
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t i = 0; i < count; i += kBlock) {
      HWY_DYNAMIC_DISPATCH(GradientSumsOfBlock)
      (x + i, dy + i, scale == nullptr ? nullptr : scale + i,
       static_cast<size_t>(std::min(kBlock, count - i)), mean, &sums.sum, &sums.product);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const T gradient = scale == nullptr ? dy[i] : dy[i] * scale[i];
      sums.sum += gradient;
      sums.product += gradient * (x[i] - mean);
    }
  }
  return sums;
}

template <typename T>
void NormalizeRun(const T* x, int64_t count, T mean, T slope, T shift, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(NormalizeFloats)(x, static_cast<size_t>(count), mean, slope, shift, y);
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * slope + shift;
  }
}

template <typename T>
void NormalizeRow(const T* x, int64_t count, T mean, T slope, const T* scale, const T* bias, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(NormalizeRowOfFloats)
    (x, static_cast<size_t>(count), mean, slope, scale, bias, y);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const T normal = (x[i] - mean) * slope;
      y[i] = normal * (scale == nullptr ? 1 : scale[i]) + (bias == nullptr ? 0 : bias[i]);
    }
  }
}

template <typename T>
void GradientRow(const T* x, const T* dy, const T* scale, int64_t count,
                 const RunGradient<T>& gradient, T* dx) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(GradientRowOfFloats)
    (x, dy, scale, static_cast<size_t>(count), gradient, dx);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const T slope = scale == nullptr ? gradient.slope : gradient.slope * scale[i];
      dx[i] = dy[i] * slope - (x[i] - gradient.mean) * gradient.factor - gradient.offset;
    }
  }
}

template <typename T>
void AddParameterGradients(const T* x, const T* dy, int64_t count, T mean, T slope, T* scale_sums,
                           T* bias_sums) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(AddParameterGradientsOfFloats)
    (x, dy, static_cast<size_t>(count), mean, slope, scale_sums, bias_sums);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      scale_sums[i] += dy[i] * ((x[i] - mean) * slope);
      bias_sums[i] += dy[i];
    }
  }
}

template RunMoments MomentsOf(const float*, int64_t);
template RunMoments MomentsOf(const double*, int64_t);
template RunGradientSums GradientSumsOf(const float*, const float*, const float*, int64_t, float);
template RunGradientSums GradientSumsOf(const double*, const double*, const double*, int64_t,
                                        double);
template void NormalizeRun(const float*, int64_t, float, float, float, float*);
template void NormalizeRun(const double*, int64_t, double, double, double, double*);
template void NormalizeRow(const float*, int64_t, float, float, const float*, const float*, float*);
template void NormalizeRow(const double*, int64_t, double, double, const double*, const double*,
                           double*);
template void GradientRow(const float*, const float*, const float*, int64_t,
                          const RunGradient<float>&, float*);
template void GradientRow(const double*, const double*, const double*, int64_t,
                          const RunGradient<double>&, double*);
template void AddParameterGradients(const float*, const float*, int64_t, float, float, float*,
                                    float*);
template void AddParameterGradients(const double*, const double*, int64_t, double, double, double*,
                                    double*);

}  // namespace skiff
#endif
