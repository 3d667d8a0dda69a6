// Two ways to reduce, by the innermost run of contiguous elements. If the run is reduced
// (FoldRows), an output is a sum along vectors. If it is kept (FoldColumns), a vector holds
// neighbouring outputs, and rows of a tile of columns are added up.
//
// Sums of float32 run in vectors of float32 over some thousand elements, or 64 rows, and go on in
// float64: so rounding errors don't grow with the size, at the speed of float32. A large reduction
// is cut into parts by the sizes alone, and the parts' results are joined in order, so the number
// of threads doesn't change results.
#include "operators/common/reduce.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "operators/common/half.h"

// The loops below are compiled once per instruction set that @highway leaves enabled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/common/reduce.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums transform(x) in four independent vectors, so that an addition needn't wait for the one
// before.
template <typename Transform>
double SumBlock(const float* HWY_RESTRICT x, size_t count, const Transform& transform) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  auto sum2 = hn::Zero(d);
  auto sum3 = hn::Zero(d);
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    sum0 = hn::Add(sum0, transform(hn::LoadU(d, x + i)));
    sum1 = hn::Add(sum1, transform(hn::LoadU(d, x + i + lanes)));
    sum2 = hn::Add(sum2, transform(hn::LoadU(d, x + i + 2 * lanes)));
    sum3 = hn::Add(sum3, transform(hn::LoadU(d, x + i + 3 * lanes)));
  }
  for (; i + lanes <= count; i += lanes) {
    sum0 = hn::Add(sum0, transform(hn::LoadU(d, x + i)));
  }
  const auto sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  // The remaining elements go into the float64 total one by one.
  double total = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  for (; i < count; ++i) {
    const hn::CappedTag<float, 1> one;
    total += static_cast<double>(hn::GetLane(transform(hn::Set(one, x[i]))));
  }
  return total;
}

double SumOfBlock(const float* x, size_t count) {
  return SumBlock(x, count, [](auto v) HWY_ATTR { return v; });
}

double SumOfSquaresOfBlock(const float* x, size_t count) {
  return SumBlock(x, count, [](auto v) HWY_ATTR { return hn::Mul(v, v); });
}

double SumOfProductsOfBlock(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                            size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    sum0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum0);
    sum1 = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), sum1);
  }
  double total = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1))));
  for (; i < count; ++i) total += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return total;
}

void AddFloats(const float* a, const float* b, float* out, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
  for (; i < count; ++i) out[i] = a[i] + b[i];
}

// A float vector of half the width is promoted to a full vector of doubles.
void AddFloatsToDoubles(const float* HWY_RESTRICT x, double* HWY_RESTRICT sums, size_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto terms = hn::PromoteTo(d, hn::LoadU(half, x + i));
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), terms), d, sums + i);
  }
  for (; i < count; ++i) sums[i] += static_cast<double>(x[i]);
}

void ScaleFloats(const float* x, float factor, float* out, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto factors = hn::Set(d, factor);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factors), d, out + i);
  }
  for (; i < count; ++i) out[i] = x[i] * factor;
}

// Rows are read in memory order, four at a time, while the results of a tile of columns stay in the
// first-level cache.
constexpr size_t kRowsAtOnce = 4;
constexpr size_t kTileColumns = 1024;

// Adds the sum of column j to totals[j], for a block of few rows and at most kTileColumns columns.
void AddColumns(const float* HWY_RESTRICT x, size_t stride, size_t rows, size_t columns,
                double* HWY_RESTRICT totals) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  // The float sums of a tile stay in the cache, and each goes into its float64 total only once.
  HWY_ALIGN float sums[kTileColumns];
  std::fill_n(sums, columns, 0.0f);
  size_t row = 0;
  for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce) {
    const float* HWY_RESTRICT row0 = x + row * stride;
    const float* HWY_RESTRICT row1 = row0 + stride;
    const float* HWY_RESTRICT row2 = row1 + stride;
    const float* HWY_RESTRICT row3 = row2 + stride;
    size_t j = 0;
    for (; j + lanes <= columns; j += lanes) {
      const auto first = hn::Add(hn::LoadU(d, row0 + j), hn::LoadU(d, row1 + j));
      const auto second = hn::Add(hn::LoadU(d, row2 + j), hn::LoadU(d, row3 + j));
      hn::Store(hn::Add(hn::Load(d, sums + j), hn::Add(first, second)), d, sums + j);
    }
    for (; j < columns; ++j) sums[j] += (row0[j] + row1[j]) + (row2[j] + row3[j]);
  }
  for (; row < rows; ++row) AddFloats(sums, x + row * stride, sums, columns);
  AddFloatsToDoubles(sums, totals, columns);
}

// Returns the lanes in which `value` is greater (kIsMax) or less than `best`, or NaN.
template <bool kIsMax, class V>
HWY_INLINE auto Wins(V value, V best) {
  const auto beyond = kIsMax ? hn::Gt(value, best) : hn::Lt(value, best);
  return hn::Or(beyond, hn::IsNaN(value));
}

template <bool kIsMax, class V>
HWY_INLINE V Better(V value, V best) {
  return hn::IfThenElse(Wins<kIsMax>(value, best), value, best);
}

template <bool kIsMax>
float ExtremeOfBlock(const float* HWY_RESTRICT x, size_t count, float start) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  // Four independent vectors, as in SumBlock.
  auto best0 = hn::Set(d, start);
  auto best1 = best0;
  auto best2 = best0;
  auto best3 = best0;
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    best0 = Better<kIsMax>(hn::LoadU(d, x + i), best0);
    best1 = Better<kIsMax>(hn::LoadU(d, x + i + lanes), best1);
    best2 = Better<kIsMax>(hn::LoadU(d, x + i + 2 * lanes), best2);
    best3 = Better<kIsMax>(hn::LoadU(d, x + i + 3 * lanes), best3);
  }
  for (; i + lanes <= count; i += lanes) best0 = Better<kIsMax>(hn::LoadU(d, x + i), best0);
  best0 = Better<kIsMax>(Better<kIsMax>(best3, best2), Better<kIsMax>(best1, best0));
  // MaxOfLanes may drop a NaN, so the lanes are compared one by one.
  HWY_ALIGN float values[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(best0, d, values);
  float best = start;
  const auto take = [&best](float value) {
    if ((kIsMax ? value > best : value < best) || value != value) best = value;
  };
  for (size_t lane = 0; lane < lanes; ++lane) take(values[lane]);
  for (; i < count; ++i) take(x[i]);
  return best;
}

float MaxOfBlock(const float* x, size_t count, float start) {
  return ExtremeOfBlock<true>(x, count, start);
}

float MinOfBlock(const float* x, size_t count, float start) {
  return ExtremeOfBlock<false>(x, count, start);
}

template <bool kIsMax>
void ExtremeOfColumns(const float* HWY_RESTRICT x, size_t stride, size_t rows, size_t columns,
                      float* HWY_RESTRICT best) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t row = 0;
  const auto take = [&](size_t j, float value) {
    if ((kIsMax ? value > best[j] : value < best[j]) || value != value) best[j] = value;
  };
  for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce) {
    const float* HWY_RESTRICT row0 = x + row * stride;
    const float* HWY_RESTRICT row1 = row0 + stride;
    const float* HWY_RESTRICT row2 = row1 + stride;
    const float* HWY_RESTRICT row3 = row2 + stride;
    size_t j = 0;
    for (; j + lanes <= columns; j += lanes) {
      const auto first = Better<kIsMax>(hn::LoadU(d, row0 + j), hn::LoadU(d, row1 + j));
      const auto second = Better<kIsMax>(hn::LoadU(d, row2 + j), hn::LoadU(d, row3 + j));
      const auto four = Better<kIsMax>(first, second);
      hn::StoreU(Better<kIsMax>(four, hn::LoadU(d, best + j)), d, best + j);
    }
    for (; j < columns; ++j) {
      for (const float* from : {row0, row1, row2, row3}) take(j, from[j]);
    }
  }
  for (; row < rows; ++row) {
    size_t j = 0;
    for (; j + lanes <= columns; j += lanes) {
      const auto values = hn::LoadU(d, x + row * stride + j);
      hn::StoreU(Better<kIsMax>(values, hn::LoadU(d, best + j)), d, best + j);
    }
    for (; j < columns; ++j) take(j, x[row * stride + j]);
  }
}

void MaxOfColumns(const float* x, size_t stride, size_t rows, size_t columns, float* best) {
  ExtremeOfColumns<true>(x, stride, rows, columns, best);
}

void MinOfColumns(const float* x, size_t stride, size_t rows, size_t columns, float* best) {
  ExtremeOfColumns<false>(x, stride, rows, columns, best);
}

// Products are float64 throughout: those of some dozen float32 numbers may overflow or vanish.
double ProductOfBlock(const float* HWY_RESTRICT x, size_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const size_t lanes = hn::Lanes(d);
  auto product0 = hn::Set(d, 1.0);
  auto product1 = product0;
  auto product2 = product0;
  auto product3 = product0;
  const auto load = [&](size_t i) HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(half, x + i)); };
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    product0 = hn::Mul(product0, load(i));
    product1 = hn::Mul(product1, load(i + lanes));
    product2 = hn::Mul(product2, load(i + 2 * lanes));
    product3 = hn::Mul(product3, load(i + 3 * lanes));
  }
  HWY_ALIGN double values[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(hn::Mul(hn::Mul(product0, product1), hn::Mul(product2, product3)), d, values);
  double product = 1;
  for (size_t lane = 0; lane < lanes; ++lane) product *= values[lane];
  for (; i < count; ++i) product *= static_cast<double>(x[i]);
  return product;
}

void MultiplyColumns(const float* HWY_RESTRICT x, size_t stride, size_t rows, size_t columns,
                     double* HWY_RESTRICT products) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const size_t lanes = hn::Lanes(d);
  for (size_t row = 0; row < rows; ++row) {
    const float* HWY_RESTRICT from = x + row * stride;
    size_t j = 0;
    for (; j + lanes <= columns; j += lanes) {
      const auto factors = hn::PromoteTo(d, hn::LoadU(half, from + j));
      hn::StoreU(hn::Mul(hn::LoadU(d, products + j), factors), d, products + j);
    }
    for (; j < columns; ++j) products[j] *= static_cast<double>(from[j]);
  }
}

// Sets dx to the gradient where x equals out, else to 0. There is one value of both for all
// elements (kIsOne), or one for each.
template <bool kIsOne>
void SpreadFloats(const float* x, const float* out, const float* gradient, float* dx,
                  size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto load = [&](const float* values, size_t at) HWY_ATTR {
    return kIsOne ? hn::Set(d, *values) : hn::LoadU(d, values + at);
  };
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto is_equal = hn::Eq(hn::LoadU(d, x + i), load(out, i));
    hn::StoreU(hn::IfThenElseZero(is_equal, load(gradient, i)), d, dx + i);
  }
  for (; i < count; ++i) {
    const size_t at = kIsOne ? 0 : i;
    dx[i] = x[i] == out[at] ? gradient[at] : 0.0f;
  }
}

// HWY_EXPORT takes no templates, hence a function for each instance.
void SpreadOne(const float* x, const float* out, const float* gradient, float* dx, size_t count) {
  SpreadFloats<true>(x, out, gradient, dx, count);
}

void SpreadEach(const float* x, const float* out, const float* gradient, float* dx, size_t count) {
  SpreadFloats<false>(x, out, gradient, dx, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(SumOfBlock);
HWY_EXPORT(SumOfSquaresOfBlock);
HWY_EXPORT(SumOfProductsOfBlock);
HWY_EXPORT(AddFloats);
HWY_EXPORT(AddFloatsToDoubles);
HWY_EXPORT(ScaleFloats);
HWY_EXPORT(AddColumns);
HWY_EXPORT(MaxOfBlock);
HWY_EXPORT(MinOfBlock);
HWY_EXPORT(MaxOfColumns);
HWY_EXPORT(MinOfColumns);
HWY_EXPORT(ProductOfBlock);
HWY_EXPORT(MultiplyColumns);
HWY_EXPORT(SpreadOne);
HWY_EXPORT(SpreadEach);

// The number of elements, or rows, summed in float before the sum goes on in float64.
constexpr int64_t kBlock = 4096;
constexpr int64_t kBlockRows = 64;
// A part of the work with fewer elements isn't worth a thread.
constexpr int64_t kGrain = 16384;
constexpr int64_t kMaxParts = 256;
constexpr int64_t kColumns = HWY_NAMESPACE::kTileColumns;
// The most partial results of columns, which are on the stack.
constexpr int64_t kMaxCarries = 8192;

// Sums one part of FoldParts. Integers are summed modulo 2^64, where the order doesn't matter.
template <typename T>
SumOf<T> BlockSum(const T* x, int64_t count) {
  SumOf<T> sum = 0;
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t i = 0; i < count; i += kBlock) {
      sum +=
          HWY_DYNAMIC_DISPATCH(SumOfBlock)(x + i, static_cast<size_t>(std::min(kBlock, count - i)));
    }
  } else {
    for (int64_t i = 0; i < count; ++i) sum += static_cast<SumOf<T>>(x[i]);
  }
  return sum;
}

template <typename T>
double BlockSumOfSquares(const T* x, int64_t count) {
  double sum = 0;
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t i = 0; i < count; i += kBlock) {
      sum += HWY_DYNAMIC_DISPATCH(SumOfSquaresOfBlock)(
          x + i, static_cast<size_t>(std::min(kBlock, count - i)));
    }
  } else {
    for (int64_t i = 0; i < count; ++i) sum += x[i] * x[i];
  }
  return sum;
}

template <typename T>
double BlockSumOfSquares(const typename SumsOfSquares<T>::Array& array, int64_t first,
                         int64_t count) {
  if (!IsHalf(array.dtype)) {
    return BlockSumOfSquares(static_cast<const T*>(array.data) + first, count);
  }
  double sum = 0;
  if constexpr (std::is_same_v<T, float>) {
    const HalfArrays conversions = HalfArraysOf(array.dtype);
    const auto* halves = static_cast<const uint16_t*>(array.data) + first;
    // Converts block by block, so that the floats are read from the first-level cache.
    alignas(64) float block[kBlock];
    for (int64_t i = 0; i < count; i += kBlock) {
      const int64_t size = std::min(kBlock, count - i);
      conversions.to_floats(halves + i, size, block);
      sum += BlockSumOfSquares(block, size);
    }
  }
  return sum;
}

template <typename T>
SumOf<T> BlockSumOfProducts(const T* a, const T* b, int64_t count) {
  SumOf<T> sum = 0;
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t i = 0; i < count; i += kBlock) {
      sum += HWY_DYNAMIC_DISPATCH(SumOfProductsOfBlock)(
          a + i, b + i, static_cast<size_t>(std::min(kBlock, count - i)));
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      sum += static_cast<SumOf<T>>(a[i]) * static_cast<SumOf<T>>(b[i]);
    }
  }
  return sum;
}

// Returns the number of elements per part, such that there are at most kMaxParts parts.
int64_t PartSize(int64_t count) { return std::max(kGrain, (count + kMaxParts - 1) / kMaxParts); }

// Splits [0, count) into parts that depend only on count, and joins their results in order. So the
// number of threads doesn't change the result.
template <typename Total, typename OfPart, typename Join>
Total FoldParts(int64_t count, const OfPart& of_part, const Join& join) {
  const int64_t part = PartSize(count);
  const int64_t parts = (count + part - 1) / part;
  if (parts <= 1) return of_part(0, count);
  std::array<Total, kMaxParts> results;
  ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      results[static_cast<size_t>(i)] = of_part(i * part, std::min(part, count - i * part));
    }
  });
  Total total = results[0];
  for (int64_t i = 1; i < parts; ++i) total = join(total, results[static_cast<size_t>(i)]);
  return total;
}

// Adds the sum of column j to totals[j].
template <typename T>
void AddColumnSums(const T* x, int64_t stride, int64_t rows, int64_t columns, SumOf<T>* totals) {
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t row = 0; row < rows; row += kBlockRows) {
      HWY_DYNAMIC_DISPATCH(AddColumns)
      (x + row * stride, static_cast<size_t>(stride),
       static_cast<size_t>(std::min(kBlockRows, rows - row)), static_cast<size_t>(columns), totals);
    }
  } else {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < columns; ++j) totals[j] += static_cast<SumOf<T>>(x[row * stride + j]);
    }
  }
}

// A rule defines a reduction. Carry holds a partial result, which starts as Identity(); OfRow
// reduces contiguous elements, AddColumns the elements of each column, and Join combines two
// partial results.

template <typename T>
struct Addition {
  using Value = T;
  using Carry = SumOf<T>;
  static Carry Identity() { return 0; }
  static Carry Join(Carry a, Carry b) { return a + b; }
  static Carry OfRow(const T* x, int64_t count) { return BlockSum(x, count); }
  static void AddColumns(const T* x, int64_t stride, int64_t rows, int64_t columns,
                         Carry* carries) {
    AddColumnSums(x, stride, rows, columns, carries);
  }
};

// The loops of a rule that has no vector loops: `Rule` defines Identity and Join.
template <typename Rule, typename T, typename Carry>
struct PlainLoops {
  static Carry OfRow(const T* x, int64_t count) {
    Carry carry = Rule::Identity();
    for (int64_t i = 0; i < count; ++i) carry = Rule::Join(carry, static_cast<Carry>(x[i]));
    return carry;
  }
  static void AddColumns(const T* x, int64_t stride, int64_t rows, int64_t columns,
                         Carry* carries) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < columns; ++j) {
        carries[j] = Rule::Join(carries[j], static_cast<Carry>(x[row * stride + j]));
      }
    }
  }
};

// Integers are multiplied modulo 2^64: the low bits are those of T's own wrapped product, and
// unsigned overflow is defined.
template <typename T>
using ProductOf = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <typename T>
struct Multiplication : PlainLoops<Multiplication<T>, T, ProductOf<T>> {
  using Value = T;
  using Carry = ProductOf<T>;
  static Carry Identity() { return 1; }
  static Carry Join(Carry a, Carry b) { return a * b; }
};

template <>
struct Multiplication<float> {
  using Value = float;
  using Carry = double;
  static double Identity() { return 1; }
  static double Join(double a, double b) { return a * b; }
  static double OfRow(const float* x, int64_t count) {
    return HWY_DYNAMIC_DISPATCH(ProductOfBlock)(x, static_cast<size_t>(count));
  }
  static void AddColumns(const float* x, int64_t stride, int64_t rows, int64_t columns,
                         double* carries) {
    HWY_DYNAMIC_DISPATCH(MultiplyColumns)
    (x, static_cast<size_t>(stride), static_cast<size_t>(rows), static_cast<size_t>(columns),
     carries);
  }
};

template <typename T, bool kIsMax>
constexpr T WorstValue() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    return kIsMax ? -Limits::infinity() : Limits::infinity();
  } else {
    return kIsMax ? Limits::lowest() : Limits::max();
  }
}

template <typename T, bool kIsMax>
struct Extreme : PlainLoops<Extreme<T, kIsMax>, T, T> {
  using Value = T;
  using Carry = T;
  static T Identity() { return WorstValue<T, kIsMax>(); }
  static T Join(T best, T value) {
    return (kIsMax ? value > best : value < best) || value != value ? value : best;
  }
};

template <bool kIsMax>
struct Extreme<float, kIsMax> {
  using Value = float;
  using Carry = float;
  static float Identity() { return WorstValue<float, kIsMax>(); }
  // Every float is a double, so this is exact.
  static float Join(float best, float value) { return Extreme<double, kIsMax>::Join(best, value); }
  static float OfRow(const float* x, int64_t count) {
    const auto size = static_cast<size_t>(count);
    return kIsMax ? HWY_DYNAMIC_DISPATCH(MaxOfBlock)(x, size, Identity())
                  : HWY_DYNAMIC_DISPATCH(MinOfBlock)(x, size, Identity());
  }
  static void AddColumns(const float* x, int64_t stride, int64_t rows, int64_t columns,
                         float* carries) {
    const auto step = static_cast<size_t>(stride);
    const auto height = static_cast<size_t>(rows);
    const auto width = static_cast<size_t>(columns);
    if (kIsMax) {
      HWY_DYNAMIC_DISPATCH(MaxOfColumns)(x, step, height, width, carries);
    } else {
      HWY_DYNAMIC_DISPATCH(MinOfColumns)(x, step, height, width, carries);
    }
  }
};

// Whether all (kOfAll) or any of some bools are true. The search ends at the first false (or true)
// one.
template <bool kOfAll>
struct Quantifier : PlainLoops<Quantifier<kOfAll>, bool, bool> {
  using Value = bool;
  using Carry = bool;
  static bool Identity() { return kOfAll; }
  static bool Join(bool a, bool b) { return kOfAll ? a && b : a || b; }
  // memchr finds the deciding element faster than a loop that joins all of them.
  static bool OfRow(const bool* x, int64_t count) {
    const bool found = std::memchr(x, kOfAll ? 0 : 1, static_cast<size_t>(count)) != nullptr;
    return kOfAll != found;
  }
};

}  // namespace

template <typename T>
SumOf<T> Sum(const T* x, int64_t count) {
  return FoldParts<SumOf<T>>(
      count, [x](int64_t begin, int64_t size) { return BlockSum(x + begin, size); },
      Addition<T>::Join);
}

template <typename T>
double SumOfSquares(const T* x, int64_t count) {
  return FoldParts<double>(
      count, [x](int64_t begin, int64_t size) { return BlockSumOfSquares(x + begin, size); },
      Addition<double>::Join);
}

template <typename T>
SumsOfSquares<T>::SumsOfSquares(std::vector<int64_t> counts) : counts_(std::move(counts)) {
  // All arrays' parts are numbered through, so that threads share many small arrays as evenly as a
  // single large one.
  first_parts_.push_back(0);
  for (const int64_t count : counts_) {
    const int64_t parts = (count + PartSize(count) - 1) / PartSize(count);
    first_parts_.push_back(first_parts_.back() + parts);
  }
}

template <typename T>
void SumsOfSquares<T>::Add(const std::vector<Array>& arrays, void* workspace, double* sums) const {
  auto* of_parts = static_cast<double*>(workspace);
  ParallelFor(part_count(), 1, [&](int64_t begin, int64_t end) {
    // The array that the first part belongs to; empty arrays have no part and are skipped.
    const auto above = std::ranges::upper_bound(first_parts_, begin);
    auto array = static_cast<size_t>(above - first_parts_.begin()) - 1;
    for (int64_t part = begin; part < end; ++part) {
      while (part >= first_parts_[array + 1]) ++array;
      const int64_t size = PartSize(counts_[array]);
      const int64_t first = (part - first_parts_[array]) * size;
      of_parts[part] =
          BlockSumOfSquares<T>(arrays[array], first, std::min(size, counts_[array] - first));
    }
  });
  for (size_t i = 0; i < counts_.size(); ++i) {
    // In the order of the parts, whichever thread computed them.
    sums[i] = std::accumulate(of_parts + first_parts_[i], of_parts + first_parts_[i + 1], 0.0);
  }
}

template <typename T>
SumOf<T> SumOfProducts(const T* a, const T* b, int64_t count) {
  return FoldParts<SumOf<T>>(
      count,
      [a, b](int64_t begin, int64_t size) {
        return BlockSumOfProducts(a + begin, b + begin, size);
      },
      Addition<T>::Join);
}

// On the calling thread, since callers already share rows between threads.
template <typename T>
T Largest(const T* x, int64_t count) {
  return Extreme<T, true>::OfRow(x, count);
}

template <typename T>
T Smallest(const T* x, int64_t count) {
  return Extreme<T, false>::OfRow(x, count);
}

void AddToSums(const float* x, double* sums, int64_t count) {
  HWY_DYNAMIC_DISPATCH(AddFloatsToDoubles)(x, sums, static_cast<size_t>(count));
}

template <typename T>
void AddArrays(const T* a, const T* b, T* out, int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(AddFloats)(a, b, out, static_cast<size_t>(count));
  } else {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<T>(static_cast<SumOf<T>>(a[i]) + static_cast<SumOf<T>>(b[i]));
    }
  }
}

template <typename T>
void ScaleArray(const T* x, T factor, T* out, int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(ScaleFloats)(x, factor, out, static_cast<size_t>(count));
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = factor * x[i];
  }
}

AxisReduction::AxisReduction(const Shape& shape, const std::vector<bool>& is_reduced) {
  std::vector<int64_t> kept;
  std::vector<int64_t> reduced;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    (is_reduced[static_cast<size_t>(axis)] ? reduced : kept).push_back(shape[axis]);
  }
  output_count_ = ElementCount(kept);
  reduced_elements_ = ElementCount(reduced);
  if (shape.element_count() == 0) {
    // No element is read: Fold sets each output to the identity of its reduction.
    kept_count_ = 0;
    return;
  }
  // From the innermost axis: axes of one kind that are next to the run extend it; the others become
  // dims, merged with neighbours of the same kind.
  int64_t stride = 1;
  bool in_run = true;
  bool previous_is_reduced = true;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const int64_t size = shape[axis];
    const bool axis_is_reduced = is_reduced[static_cast<size_t>(axis)];
    // An axis of one element changes neither the order of elements nor the results.
    if (size == 1) continue;
    if (stride == 1) run_is_reduced_ = previous_is_reduced = axis_is_reduced;
    in_run = in_run && axis_is_reduced == run_is_reduced_;
    std::vector<Dim>& dims = axis_is_reduced ? reduced_ : kept_;
    if (in_run) {
      run_length_ *= size;
    } else if (axis_is_reduced == previous_is_reduced && !dims.empty()) {
      // The two axes are contiguous: together they are a dim with the stride of the inner one.
      dims.front().size *= size;
    } else {
      dims.insert(dims.begin(), {size, stride});
    }
    previous_is_reduced = axis_is_reduced;
    stride *= size;
  }
  for (const Dim& dim : kept_) kept_count_ *= dim.size;
  for (const Dim& dim : reduced_) reduced_count_ *= dim.size;
}

// Returns the offset of the element with a row-major index over the dims.
int64_t AxisReduction::Offset(const std::vector<Dim>& dims, int64_t index) {
  int64_t offset = 0;
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    offset += index % dim->size * dim->stride;
    index /= dim->size;
  }
  return offset;
}

template <typename Rule, typename Out, typename Finish>
void AxisReduction::FoldRows(const typename Rule::Value* x, Out* out, const Finish& finish) const {
  // A single output of contiguous elements: threads share its parts. Otherwise they share the
  // outputs.
  if (kept_count_ == 1 && reduced_count_ == 1) {
    *out = finish(FoldParts<typename Rule::Carry>(
        run_length_, [x](int64_t begin, int64_t size) { return Rule::OfRow(x + begin, size); },
        Rule::Join));
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kGrain / (reduced_count_ * run_length_));
  ParallelFor(kept_count_, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const typename Rule::Value* from = x + Offset(kept_, i);
      typename Rule::Carry carry = Rule::Identity();
      for (int64_t r = 0; r < reduced_count_; ++r) {
        carry = Rule::Join(carry, Rule::OfRow(from + Offset(reduced_, r), run_length_));
      }
      out[i] = finish(carry);
    }
  });
}

template <typename Rule, typename Out, typename Finish>
void AxisReduction::FoldColumns(const typename Rule::Value* x, Out* out,
                                const Finish& finish) const {
  using Carry = typename Rule::Carry;
  const int64_t tiles = (run_length_ + kColumns - 1) / kColumns;
  // The rows of a column tile: iterations of the reduced dims, of which the innermost has one
  // stride.
  const Dim rows = reduced_.empty() ? Dim{1, 0} : reduced_.back();
  // Adds rows [begin, end) of a tile to the carries.
  const auto collect = [&](int64_t tile, int64_t begin, int64_t end, Carry* carries) {
    const int64_t column = tile % tiles * kColumns;
    const int64_t columns = std::min(kColumns, run_length_ - column);
    const typename Rule::Value* from = x + Offset(kept_, tile / tiles) + column;
    std::fill_n(carries, columns, Rule::Identity());
    for (int64_t r = begin; r < end;) {
      const int64_t height = std::min(rows.size - r % rows.size, end - r);
      Rule::AddColumns(from + Offset(reduced_, r), rows.stride, height, columns, carries);
      r += height;
    }
    return columns;
  };
  // Few columns don't keep all threads busy, so their rows are cut into parts. The sizes alone
  // determine the cut.
  const int64_t outputs = kept_count_ * run_length_;
  // As many parts as there is stack for, and none with less than kGrain elements.
  const int64_t parts = std::min(kMaxCarries / outputs, reduced_count_ * outputs / kGrain);
  if (parts > 1) {
    std::array<Carry, kMaxCarries> carries;
    const int64_t height = (reduced_count_ + parts - 1) / parts;
    // The last parts may have no rows, since the height is rounded up. Their carries are
    // identities.
    ParallelFor(parts * kept_count_ * tiles, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t tile = i % (kept_count_ * tiles);
        const int64_t part = i / (kept_count_ * tiles);
        const int64_t first = std::min(part * height, reduced_count_);
        const int64_t at = tile / tiles * run_length_ + tile % tiles * kColumns;
        collect(tile, first, std::min(first + height, reduced_count_),
                carries.data() + part * outputs + at);
      }
    });
    for (int64_t j = 0; j < outputs; ++j) {
      Carry carry = carries[static_cast<size_t>(j)];
      for (int64_t part = 1; part < parts; ++part) {
        carry = Rule::Join(carry, carries[static_cast<size_t>(part * outputs + j)]);
      }
      out[j] = finish(carry);
    }
    return;
  }
  const int64_t grain =
      std::max<int64_t>(1, kGrain / (reduced_count_ * std::min(kColumns, run_length_)));
  ParallelFor(kept_count_ * tiles, grain, [&](int64_t begin, int64_t end) {
    std::array<Carry, kColumns> carries;
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t columns = collect(tile, 0, reduced_count_, carries.data());
      Out* to = out + tile / tiles * run_length_ + tile % tiles * kColumns;
      for (int64_t j = 0; j < columns; ++j) to[j] = finish(carries[static_cast<size_t>(j)]);
    }
  });
}

template <typename Rule, typename Out, typename Finish>
void AxisReduction::Fold(const typename Rule::Value* x, Out* out, const Finish& finish) const {
  if (output_count_ == 0) return;
  if (kept_count_ == 0) {
    std::fill(out, out + output_count_, finish(Rule::Identity()));
  } else if (run_is_reduced_) {
    FoldRows<Rule>(x, out, finish);
  } else {
    FoldColumns<Rule>(x, out, finish);
  }
}

template <typename T, typename Out>
void AxisReduction::Sum(const T* x, Out* out, int64_t divisor) const {
  // A sum of integers has wrapped around modulo 2^64; divide the signed number that it represents.
  using Signed = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  Fold<Addition<T>>(x, out, [divisor](SumOf<T> sum) {
    return static_cast<Out>(static_cast<Signed>(sum) / static_cast<Signed>(divisor));
  });
}

template <typename T>
void AxisReduction::Product(const T* x, T* out) const {
  Fold<Multiplication<T>>(x, out, [](ProductOf<T> product) { return static_cast<T>(product); });
}

template <typename T>
void AxisReduction::Max(const T* x, T* out) const {
  Fold<Extreme<T, true>>(x, out, [](T best) { return best; });
}

template <typename T>
void AxisReduction::Min(const T* x, T* out) const {
  Fold<Extreme<T, false>>(x, out, [](T best) { return best; });
}

void AxisReduction::All(const bool* x, bool* out) const {
  Fold<Quantifier<true>>(x, out, [](bool result) { return result; });
}

void AxisReduction::Any(const bool* x, bool* out) const {
  Fold<Quantifier<false>>(x, out, [](bool result) { return result; });
}

template <typename T>
void AxisReduction::Broadcast(const T* sums, T factor, T* x) const {
  ForEachPiece([=](int64_t offset, int64_t size, int64_t output, bool is_one_output) {
    if (is_one_output) {
      std::fill(x + offset, x + offset + size, factor * sums[output]);
    } else {
      ScaleArray(sums + output, factor, x + offset, size);
    }
  });
}

template <typename T>
void AxisReduction::SpreadToEqual(const T* x, const T* out, const T* gradient, T* dx) const {
  ForEachPiece([=](int64_t offset, int64_t size, int64_t output, bool is_one_output) {
    const T* from = x + offset;
    T* to = dx + offset;
    if constexpr (std::is_same_v<T, float>) {
      const auto count = static_cast<size_t>(size);
      if (is_one_output) {
        HWY_DYNAMIC_DISPATCH(SpreadOne)(from, out + output, gradient + output, to, count);
      } else {
        HWY_DYNAMIC_DISPATCH(SpreadEach)(from, out + output, gradient + output, to, count);
      }
    } else {
      for (int64_t i = 0; i < size; ++i) {
        const int64_t at = is_one_output ? output : output + i;
        to[i] = from[i] == out[at] ? gradient[at] : T{0};
      }
    }
  });
}

template double Sum(const float*, int64_t);
template double Sum(const double*, int64_t);
template uint64_t Sum(const int32_t*, int64_t);
template uint64_t Sum(const int64_t*, int64_t);
template double SumOfSquares(const float*, int64_t);
template double SumOfSquares(const double*, int64_t);
template class SumsOfSquares<float>;
template class SumsOfSquares<double>;
template SumOf<float> SumOfProducts(const float*, const float*, int64_t);
template SumOf<double> SumOfProducts(const double*, const double*, int64_t);
template SumOf<int32_t> SumOfProducts(const int32_t*, const int32_t*, int64_t);
template SumOf<int64_t> SumOfProducts(const int64_t*, const int64_t*, int64_t);
template float Largest(const float*, int64_t);
template double Largest(const double*, int64_t);
template int32_t Largest(const int32_t*, int64_t);
template int64_t Largest(const int64_t*, int64_t);
template float Smallest(const float*, int64_t);
template double Smallest(const double*, int64_t);
template int32_t Smallest(const int32_t*, int64_t);
template int64_t Smallest(const int64_t*, int64_t);
template void AddArrays(const float*, const float*, float*, int64_t);
template void AddArrays(const double*, const double*, double*, int64_t);
template void AddArrays(const int32_t*, const int32_t*, int32_t*, int64_t);
template void AddArrays(const int64_t*, const int64_t*, int64_t*, int64_t);
template void ScaleArray(const float*, float, float*, int64_t);
template void ScaleArray(const double*, double, double*, int64_t);
template void AxisReduction::Sum(const float*, float*, int64_t) const;
template void AxisReduction::Sum(const double*, double*, int64_t) const;
template void AxisReduction::Sum(const int32_t*, int32_t*, int64_t) const;
template void AxisReduction::Sum(const int64_t*, int64_t*, int64_t) const;
template void AxisReduction::Sum(const int32_t*, int64_t*, int64_t) const;
template void AxisReduction::Sum(const bool*, int64_t*, int64_t) const;
template void AxisReduction::Product(const float*, float*) const;
template void AxisReduction::Product(const double*, double*) const;
template void AxisReduction::Product(const int32_t*, int32_t*) const;
template void AxisReduction::Product(const int64_t*, int64_t*) const;
template void AxisReduction::Max(const float*, float*) const;
template void AxisReduction::Max(const double*, double*) const;
template void AxisReduction::Max(const int32_t*, int32_t*) const;
template void AxisReduction::Max(const int64_t*, int64_t*) const;
template void AxisReduction::Min(const float*, float*) const;
template void AxisReduction::Min(const double*, double*) const;
template void AxisReduction::Min(const int32_t*, int32_t*) const;
template void AxisReduction::Min(const int64_t*, int64_t*) const;
template void AxisReduction::Broadcast(const float*, float, float*) const;
template void AxisReduction::Broadcast(const double*, double, double*) const;
template void AxisReduction::SpreadToEqual(const float*, const float*, const float*, float*) const;
template void AxisReduction::SpreadToEqual(const double*, const double*, const double*,
                                           double*) const;

}  // namespace skiff
#endif  // HWY_ONCE
