// The loops of float32 are vectors with remainders in scalars, once per instruction set; those of
// float64 are plain. Sums over a run's elements, but for the pivot's, run in float32 vectors over a
// block of kBlock elements, as these hold twice as many elements, and then in float64: the block
// bounds the rounding error of float32, however long the run. Runs whose squares float32 can't hold
// are computed again in plain loops of float64.
#include "operators/nn/normalization/row_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "operators/common/extreme_square.h"

// The loops below are compiled once per instruction set that @highway leaves enabled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/normalization/row_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
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

// (x - mean) * slope, a vector at a time.
struct Normalizer {
  HWY_INLINE Normalizer(float mean, float slope)
      : means(hn::Set(Floats(), mean)), slopes(hn::Set(Floats(), slope)) {}
  HWY_INLINE Vector operator()(const float* x) const {
    return hn::Mul(hn::Sub(hn::LoadU(Floats(), x), means), slopes);
  }

  Vector means;
  Vector slopes;
};

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
  const Normalizer normal_of(mean, slope);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Vector value = normal_of(x + i);
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

template <bool kHasBias>
HWY_INLINE void AddParameterGradientsWith(const float* HWY_RESTRICT x, const float* HWY_RESTRICT dy,
                                          size_t count, float mean, float slope,
                                          float* HWY_RESTRICT scale_sums,
                                          float* HWY_RESTRICT bias_sums) {
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  const Normalizer normal_of(mean, slope);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Vector gradient = hn::LoadU(d, dy + i);
    const Vector normal = normal_of(x + i);
    hn::StoreU(hn::MulAdd(gradient, normal, hn::LoadU(d, scale_sums + i)), d, scale_sums + i);
    if (kHasBias) hn::StoreU(hn::Add(hn::LoadU(d, bias_sums + i), gradient), d, bias_sums + i);
  }
  for (; i < count; ++i) {
    scale_sums[i] += dy[i] * ((x[i] - mean) * slope);
    if (kHasBias) bias_sums[i] += dy[i];
  }
}

void AddParameterGradientsOfFloats(const float* x, const float* dy, size_t count, float mean,
                                   float slope, float* scale_sums, float* bias_sums) {
  if (bias_sums != nullptr) {
    AddParameterGradientsWith<true>(x, dy, count, mean, slope, scale_sums, bias_sums);
  } else {
    AddParameterGradientsWith<false>(x, dy, count, mean, slope, scale_sums, bias_sums);
  }
}

}  // namespace skiff::HWY_NAMESPACE
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

// In two passes, since the mean isn't known before the first.
template <typename T>
RunMoments MomentsInDoubles(const T* x, int64_t count) {
  RunMoments moments;
  for (int64_t i = 0; i < count; ++i) moments.mean += x[i];
  moments.mean /= static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    moments.squares += (x[i] - moments.mean) * (x[i] - moments.mean);
  }
  return moments;
}

// Whether the vector loops compute it.
template <typename T, typename C>
constexpr bool kHasVectors = std::is_same_v<T, float>&& std::is_same_v<C, float>;

}  // namespace

template <typename T>
RunMoments MomentsOf(const T* x, int64_t count, double epsilon) {
  if (count == 0) return {};
  if constexpr (std::is_same_v<T, float>) {
    const RunMoments moments = MomentsOfFloats(x, count);
    const double variance = moments.squares / static_cast<double>(count);
    if (!IsExtremeSquare(variance + epsilon)) return moments;
  }
  return MomentsInDoubles(x, count);
}

template <typename T, typename C>
RunGradientSums GradientSumsOf(const T* x, const T* dy, const T* scale, int64_t count, C mean) {
  RunGradientSums sums;
  if constexpr (kHasVectors<T, C>) {
    for (int64_t i = 0; i < count; i += kBlock) {
      HWY_DYNAMIC_DISPATCH(GradientSumsOfBlock)
      (x + i, dy + i, scale == nullptr ? nullptr : scale + i,
       static_cast<size_t>(std::min(kBlock, count - i)), mean, &sums.sum, &sums.product);
    }
    // Neither is finite if a float32 sum has overflowed.
    if (!std::isfinite(sums.sum + sums.product)) {
      return GradientSumsOf(x, dy, scale, count, static_cast<double>(mean));
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const C own = static_cast<C>(dy[i]);
      const C gradient = scale == nullptr ? own : own * static_cast<C>(scale[i]);
      sums.sum += gradient;
      sums.product += gradient * (static_cast<C>(x[i]) - mean);
    }
  }
  return sums;
}

template <typename T, typename C>
void NormalizeRun(const T* x, int64_t count, C mean, C slope, C shift, T* y) {
  if constexpr (kHasVectors<T, C>) {
    HWY_DYNAMIC_DISPATCH(NormalizeFloats)(x, static_cast<size_t>(count), mean, slope, shift, y);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      y[i] = static_cast<T>((static_cast<C>(x[i]) - mean) * slope + shift);
    }
  }
}

template <typename T, typename C>
void NormalizeRow(const T* x, int64_t count, C mean, C slope, const T* scale, const T* bias, T* y) {
  if constexpr (kHasVectors<T, C>) {
    HWY_DYNAMIC_DISPATCH(NormalizeRowOfFloats)
    (x, static_cast<size_t>(count), mean, slope, scale, bias, y);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const C normal = (static_cast<C>(x[i]) - mean) * slope;
      y[i] = static_cast<T>(normal * (scale == nullptr ? C{1} : static_cast<C>(scale[i])) +
                            (bias == nullptr ? C{0} : static_cast<C>(bias[i])));
    }
  }
}

template <typename T, typename C>
void GradientRow(const T* x, const T* dy, const T* scale, int64_t count,
                 const RunGradient<C>& gradient, T* dx) {
  if constexpr (kHasVectors<T, C>) {
    HWY_DYNAMIC_DISPATCH(GradientRowOfFloats)
    (x, dy, scale, static_cast<size_t>(count), gradient, dx);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const C slope = scale == nullptr ? gradient.slope : gradient.slope * static_cast<C>(scale[i]);
      const C distance = static_cast<C>(x[i]) - gradient.mean;
      dx[i] = static_cast<T>(static_cast<C>(dy[i]) * slope - distance * gradient.factor -
                             gradient.offset);
    }
  }
}

template <typename T, typename C>
void AddParameterGradients(const T* x, const T* dy, int64_t count, C mean, C slope, T* scale_sums,
                           T* bias_sums) {
  if constexpr (kHasVectors<T, C>) {
    HWY_DYNAMIC_DISPATCH(AddParameterGradientsOfFloats)
    (x, dy, static_cast<size_t>(count), mean, slope, scale_sums, bias_sums);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const C normal = (static_cast<C>(x[i]) - mean) * slope;
      scale_sums[i] += static_cast<T>(static_cast<C>(dy[i]) * normal);
      if (bias_sums != nullptr) bias_sums[i] += dy[i];
    }
  }
}

#define SKIFF_ROW_NORM(T, C)                                                                   \
  template RunGradientSums GradientSumsOf(const T*, const T*, const T*, int64_t, C);           \
  template void NormalizeRun(const T*, int64_t, C, C, C, T*);                                  \
  template void NormalizeRow(const T*, int64_t, C, C, const T*, const T*, T*);                 \
  template void GradientRow(const T*, const T*, const T*, int64_t, const RunGradient<C>&, T*); \
  template void AddParameterGradients(const T*, const T*, int64_t, C, C, T*, T*)

template RunMoments MomentsOf(const float*, int64_t, double);
template RunMoments MomentsOf(const double*, int64_t, double);
SKIFF_ROW_NORM(float, float);
SKIFF_ROW_NORM(float, double);
SKIFF_ROW_NORM(double, double);

#undef SKIFF_ROW_NORM

}  // namespace skiff
#endif
