#include "operators/common/cpu/softmax_tiles.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// The loops below are compiled once per instruction set that @highway leaves enabled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/common/cpu/softmax_tiles.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"

// After foreach_target.h, since these headers are compiled once per instruction set as well.
#include "hwy/highway.h"
#include "operators/common/cpu/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

HWY_INLINE int64_t LaneCount() { return static_cast<int64_t>(hn::Lanes(Floats())); }

// Loads the first `count` lanes of a vector from memory and sets the others to `fill`.
HWY_INLINE Vector LoadPart(const float* from, int64_t count, float fill) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  for (int64_t i = 0; i < LaneCount(); ++i) lanes[i] = i < count ? from[i] : fill;
  return hn::Load(Floats(), lanes);
}

// Elements after the last lane may belong to another thread's tile, so they aren't written.
HWY_INLINE void StorePart(Vector v, int64_t count, float* to) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, Floats(), lanes);
  std::memcpy(to, lanes, static_cast<size_t>(count) * sizeof(float));
}

// Calls visit(offset, item, count) for the vectors of a tile: item after item if classes are
// contiguous, else class after class for a vector of items. Calls start(item, count of items)
// before, and finish(item, count of items) after the vectors that belong together.
template <typename Start, typename Visit, typename Finish>
HWY_INLINE void VisitTile(const SoftmaxTile& tile, const Start& start, const Visit& visit,
                          const Finish& finish) {
  const int64_t lanes = LaneCount();
  if (tile.class_stride == 1) {
    // A row: its classes fill vectors, and the lanes are joined at its end.
    for (int64_t item = 0; item < tile.items; ++item) {
      const int64_t row = item * tile.item_stride;
      start(item, int64_t{1});
      int64_t c = 0;
      for (; c + lanes <= tile.classes; c += lanes) visit(row + c, lanes);
      if (c < tile.classes) visit(row + c, tile.classes - c);
      finish(item, int64_t{1});
    }
    return;
  }
  // Columns: each lane is an item of its own, so lanes need not be joined.
  for (int64_t item = 0; item < tile.items; item += lanes) {
    const int64_t count = HWY_MIN(lanes, tile.items - item);
    start(item, count);
    for (int64_t c = 0; c < tile.classes; ++c) visit(item + c * tile.class_stride, count);
    finish(item, count);
  }
}

// Only the last vector of a row, or of a tile's items, may not be whole. Such a vector is copied
// through memory.
HWY_INLINE Vector LoadLanes(const float* from, int64_t count, float fill) {
  return count == LaneCount() ? hn::LoadU(Floats(), from) : LoadPart(from, count, fill);
}

HWY_INLINE void StoreLanes(Vector v, int64_t count, float* to) {
  if (count == LaneCount()) {
    hn::StoreU(v, Floats(), to);
  } else {
    StorePart(v, count, to);
  }
}

// Returns the value of an item (rows: in every lane) or of a vector of items (columns).
HWY_INLINE Vector LoadStatistic(const SoftmaxTile& tile, const float* values, int64_t item,
                                int64_t count) {
  if (tile.class_stride == 1) return hn::Set(Floats(), values[item]);
  return LoadLanes(values + item, count, 0.0f);
}

HWY_INLINE void StoreSum(const SoftmaxTile& tile, Vector sum, int64_t item, int64_t count,
                         float* sums) {
  if (tile.class_stride == 1) {
    sums[item] = hn::GetLane(hn::SumOfLanes(Floats(), sum));
  } else {
    StoreLanes(sum, count, sums + item);
  }
}

// Lanes beyond the end are -inf, which is never the maximum of other elements.
void MaxOfTile(const SoftmaxTile& tile, const float* x, float* max) {
  const float lowest = -std::numeric_limits<float>::infinity();
  Vector best = hn::Set(Floats(), lowest);
  VisitTile(
      tile, [&](int64_t, int64_t) HWY_ATTR { best = hn::Set(Floats(), lowest); },
      [&](int64_t at, int64_t count)
          HWY_ATTR { best = hn::Max(best, LoadLanes(x + at, count, lowest)); },
      [&](int64_t item, int64_t count) HWY_ATTR {
        if (tile.class_stride == 1) {
          max[item] = hn::GetLane(hn::MaxOfLanes(Floats(), best));
        } else {
          StoreLanes(best, count, max + item);
        }
      });
}

// Prefetches the next tile, which begins one tile length later, while the exponentials of this one
// are computed. The address may be beyond the last element, where a prefetch has no effect.
HWY_INLINE void PrefetchNextTile(const SoftmaxTile& tile, const float* x) {
  const auto bytes = static_cast<uintptr_t>(tile.items * tile.item_stride) * sizeof(float);
  hwy::Prefetch(reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(x) + bytes));
}

void ExpOfTile(const SoftmaxTile& tile, const float* x, const float* max, float* y, float* sums) {
  // Lanes beyond the end are -inf, whose exponential adds nothing.
  const float nothing = -std::numeric_limits<float>::infinity();
  Vector shift = hn::Zero(Floats());
  Vector sum = hn::Zero(Floats());
  VisitTile(
      tile,
      [&](int64_t item, int64_t count) HWY_ATTR {
        shift = LoadStatistic(tile, max, item, count);
        sum = hn::Zero(Floats());
      },
      [&](int64_t at, int64_t count) HWY_ATTR {
        if (tile.class_stride == 1) PrefetchNextTile(tile, x + at);
        const Vector power = ExpOf(Floats(), hn::Sub(LoadLanes(x + at, count, nothing), shift));
        sum = hn::Add(sum, power);
        if (y != nullptr) StoreLanes(power, count, y + at);
      },
      [&](int64_t item, int64_t count) HWY_ATTR { StoreSum(tile, sum, item, count, sums); });
}

void ScaleTile(const SoftmaxTile& tile, const float* x, const float* factors, float* y) {
  Vector factor = hn::Zero(Floats());
  VisitTile(
      tile,
      [&](int64_t item, int64_t count)
          HWY_ATTR { factor = LoadStatistic(tile, factors, item, count); },
      [&](int64_t at, int64_t count)
          HWY_ATTR { StoreLanes(hn::Mul(LoadLanes(x + at, count, 0.0f), factor), count, y + at); },
      [](int64_t, int64_t) HWY_ATTR {});
}

void DotOfTile(const SoftmaxTile& tile, const float* a, const float* b, float* dot) {
  Vector sum = hn::Zero(Floats());
  VisitTile(
      tile, [&](int64_t, int64_t) HWY_ATTR { sum = hn::Zero(Floats()); },
      [&](int64_t at, int64_t count) HWY_ATTR {
        sum = hn::MulAdd(LoadLanes(a + at, count, 0.0f), LoadLanes(b + at, count, 0.0f), sum);
      },
      [&](int64_t item, int64_t count) HWY_ATTR { StoreSum(tile, sum, item, count, dot); });
}

void DistanceOfTile(const SoftmaxTile& tile, const float* a, const float* x, const float* max,
                    float* dot) {
  Vector top = hn::Zero(Floats());
  Vector sum = hn::Zero(Floats());
  VisitTile(
      tile,
      [&](int64_t item, int64_t count) HWY_ATTR {
        top = LoadStatistic(tile, max, item, count);
        sum = hn::Zero(Floats());
      },
      [&](int64_t at, int64_t count) HWY_ATTR {
        const Vector weight = LoadLanes(a + at, count, 0.0f);
        const Vector distance = hn::Sub(top, LoadLanes(x + at, count, 0.0f));
        // A class of weight 0 contributes nothing, even if its logit is -inf.
        const Vector term =
            hn::IfThenZeroElse(hn::Eq(weight, hn::Zero(Floats())), hn::Mul(weight, distance));
        sum = hn::Add(sum, term);
      },
      [&](int64_t item, int64_t count) HWY_ATTR { StoreSum(tile, sum, item, count, dot); });
}

// dx = (dy - dot) * y, where dot is the item's sum of y * dy.
void GradOfTile(const SoftmaxTile& tile, const float* y, const float* dy, const float* dots,
                float* dx) {
  Vector dot = hn::Zero(Floats());
  VisitTile(
      tile,
      [&](int64_t item, int64_t count) HWY_ATTR { dot = LoadStatistic(tile, dots, item, count); },
      [&](int64_t at, int64_t count) HWY_ATTR {
        const Vector difference = hn::Sub(LoadLanes(dy + at, count, 0.0f), dot);
        StoreLanes(hn::Mul(difference, LoadLanes(y + at, count, 0.0f)), count, dx + at);
      },
      [](int64_t, int64_t) HWY_ATTR {});
}

void MixTiles(const SoftmaxTile& tile, const float* a, const float* a_factors, const float* b,
              const float* b_factors, float* y) {
  Vector a_factor = hn::Zero(Floats());
  Vector b_factor = hn::Zero(Floats());
  VisitTile(
      tile,
      [&](int64_t item, int64_t count) HWY_ATTR {
        a_factor = LoadStatistic(tile, a_factors, item, count);
        b_factor = LoadStatistic(tile, b_factors, item, count);
      },
      [&](int64_t at, int64_t count) HWY_ATTR {
        const Vector first = hn::Mul(LoadLanes(a + at, count, 0.0f), a_factor);
        StoreLanes(hn::MulAdd(LoadLanes(b + at, count, 0.0f), b_factor, first), count, y + at);
      },
      [](int64_t, int64_t) HWY_ATTR {});
}

void SumOfTile(const SoftmaxTile& tile, const float* x, float* sums) {
  Vector sum = hn::Zero(Floats());
  VisitTile(
      tile, [&](int64_t, int64_t) HWY_ATTR { sum = hn::Zero(Floats()); },
      [&](int64_t at, int64_t count)
          HWY_ATTR { sum = hn::Add(sum, LoadLanes(x + at, count, 0.0f)); },
      [&](int64_t item, int64_t count) HWY_ATTR { StoreSum(tile, sum, item, count, sums); });
}

// Subtracts the maximum first: the sum of both could round away a small shift.
void SubtractFromTile(const SoftmaxTile& tile, const float* x, const float* max,
                      const float* shifts, float* y) {
  Vector top = hn::Zero(Floats());
  Vector shift = hn::Zero(Floats());
  VisitTile(
      tile,
      [&](int64_t item, int64_t count) HWY_ATTR {
        top = LoadStatistic(tile, max, item, count);
        shift = LoadStatistic(tile, shifts, item, count);
      },
      [&](int64_t at, int64_t count) HWY_ATTR {
        const Vector distance = hn::Sub(LoadLanes(x + at, count, 0.0f), top);
        StoreLanes(hn::Sub(distance, shift), count, y + at);
      },
      [](int64_t, int64_t) HWY_ATTR {});
}

// dx = dy - exp(y) * sum of dy: the probabilities are computed again, since log_softmax keeps only
// their logarithms.
void LogGradOfTile(const SoftmaxTile& tile, const float* y, const float* dy, const float* sums,
                   float* dx) {
  Vector sum = hn::Zero(Floats());
  VisitTile(
      tile,
      [&](int64_t item, int64_t count) HWY_ATTR { sum = LoadStatistic(tile, sums, item, count); },
      [&](int64_t at, int64_t count) HWY_ATTR {
        const Vector probability = ExpOf(Floats(), LoadLanes(y + at, count, 0.0f));
        const Vector gradient = LoadLanes(dy + at, count, 0.0f);
        StoreLanes(hn::NegMulAdd(probability, sum, gradient), count, dx + at);
      },
      [](int64_t, int64_t) HWY_ATTR {});
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(MaxOfTile);
HWY_EXPORT(ExpOfTile);
HWY_EXPORT(ScaleTile);
HWY_EXPORT(DotOfTile);
HWY_EXPORT(DistanceOfTile);
HWY_EXPORT(GradOfTile);
HWY_EXPORT(MixTiles);
HWY_EXPORT(SumOfTile);
HWY_EXPORT(SubtractFromTile);
HWY_EXPORT(LogGradOfTile);

// Calls visit(position, item) for each class of each item.
template <typename Visit>
void VisitPlain(const SoftmaxTile& tile, const Visit& visit) {
  for (int64_t item = 0; item < tile.items; ++item) {
    for (int64_t c = 0; c < tile.classes; ++c) {
      visit(item * tile.item_stride + c * tile.class_stride, item);
    }
  }
}

}  // namespace

template <typename T>
void TileMax(const SoftmaxTile& tile, const T* x, T* max) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(MaxOfTile)(tile, x, max);
  } else {
    std::fill(max, max + tile.items, -std::numeric_limits<T>::infinity());
    VisitPlain(tile, [&](int64_t at, int64_t item) { max[item] = std::max(max[item], x[at]); });
  }
}

template <typename T>
void TileExp(const SoftmaxTile& tile, const T* x, const T* max, T* y, T* sum) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(ExpOfTile)(tile, x, max, y, sum);
  } else {
    std::fill(sum, sum + tile.items, T{0});
    VisitPlain(tile, [&](int64_t at, int64_t item) {
      const T power = std::exp(x[at] - max[item]);
      sum[item] += power;
      if (y != nullptr) y[at] = power;
    });
  }
}

template <typename T>
void TileScale(const SoftmaxTile& tile, const T* x, const T* factor, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(ScaleTile)(tile, x, factor, y);
  } else {
    VisitPlain(tile, [&](int64_t at, int64_t item) { y[at] = x[at] * factor[item]; });
  }
}

template <typename T>
void TileDot(const SoftmaxTile& tile, const T* a, const T* b, T* dot) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(DotOfTile)(tile, a, b, dot);
  } else {
    std::fill(dot, dot + tile.items, T{0});
    VisitPlain(tile, [&](int64_t at, int64_t item) { dot[item] += a[at] * b[at]; });
  }
}

template <typename T>
void TileDistance(const SoftmaxTile& tile, const T* a, const T* x, const T* max, T* dot) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(DistanceOfTile)(tile, a, x, max, dot);
  } else {
    std::fill(dot, dot + tile.items, T{0});
    VisitPlain(tile, [&](int64_t at, int64_t item) {
      if (a[at] != 0) dot[item] += a[at] * (max[item] - x[at]);
    });
  }
}

template <typename T>
void TileSoftmaxGrad(const SoftmaxTile& tile, const T* y, const T* dy, const T* dot, T* dx) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(GradOfTile)(tile, y, dy, dot, dx);
  } else {
    VisitPlain(tile, [&](int64_t at, int64_t item) { dx[at] = (dy[at] - dot[item]) * y[at]; });
  }
}

template <typename T>
void TileMix(const SoftmaxTile& tile, const T* a, const T* a_factor, const T* b, const T* b_factor,
             T* y) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(MixTiles)(tile, a, a_factor, b, b_factor, y);
  } else {
    VisitPlain(tile, [&](int64_t at, int64_t item) {
      y[at] = a[at] * a_factor[item] + b[at] * b_factor[item];
    });
  }
}

template <typename T>
void TileSum(const SoftmaxTile& tile, const T* x, T* sum) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(SumOfTile)(tile, x, sum);
  } else {
    std::fill(sum, sum + tile.items, T{0});
    VisitPlain(tile, [&](int64_t at, int64_t item) { sum[item] += x[at]; });
  }
}

template <typename T>
void TileSubtract(const SoftmaxTile& tile, const T* x, const T* max, const T* shift, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(SubtractFromTile)(tile, x, max, shift, y);
  } else {
    VisitPlain(tile, [&](int64_t at, int64_t item) { y[at] = x[at] - max[item] - shift[item]; });
  }
}

template <typename T>
void TileLogSoftmaxGrad(const SoftmaxTile& tile, const T* y, const T* dy, const T* sum, T* dx) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(LogGradOfTile)(tile, y, dy, sum, dx);
  } else {
    VisitPlain(tile,
               [&](int64_t at, int64_t item) { dx[at] = dy[at] - std::exp(y[at]) * sum[item]; });
  }
}

template void TileMax(const SoftmaxTile&, const float*, float*);
template void TileMax(const SoftmaxTile&, const double*, double*);
template void TileExp(const SoftmaxTile&, const float*, const float*, float*, float*);
template void TileExp(const SoftmaxTile&, const double*, const double*, double*, double*);
template void TileScale(const SoftmaxTile&, const float*, const float*, float*);
template void TileScale(const SoftmaxTile&, const double*, const double*, double*);
template void TileDot(const SoftmaxTile&, const float*, const float*, float*);
template void TileDot(const SoftmaxTile&, const double*, const double*, double*);
template void TileDistance(const SoftmaxTile&, const float*, const float*, const float*, float*);
template void TileDistance(const SoftmaxTile&, const double*, const double*, const double*,
                           double*);
template void TileSoftmaxGrad(const SoftmaxTile&, const float*, const float*, const float*, float*);
template void TileSoftmaxGrad(const SoftmaxTile&, const double*, const double*, const double*,
                              double*);
template void TileMix(const SoftmaxTile&, const float*, const float*, const float*, const float*,
                      float*);
template void TileMix(const SoftmaxTile&, const double*, const double*, const double*,
                      const double*, double*);
template void TileSum(const SoftmaxTile&, const float*, float*);
template void TileSum(const SoftmaxTile&, const double*, double*);
template void TileSubtract(const SoftmaxTile&, const float*, const float*, const float*, float*);
template void TileSubtract(const SoftmaxTile&, const double*, const double*, const double*,
                           double*);
template void TileLogSoftmaxGrad(const SoftmaxTile&, const float*, const float*, const float*,
                                 float*);
template void TileLogSoftmaxGrad(const SoftmaxTile&, const double*, const double*, const double*,
                                 double*);

}  // namespace skiff
#endif  // HWY_ONCE
