#include "operators/common/cpu/reduce_loops.h"

#include <algorithm>
#include <cstddef>

// The loops below are compiled once per instruction set that @highway leaves enabled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/common/cpu/reduce_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using reduction::kTileColumns;

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

// Loops over columns read rows in memory order, four at a time, while the results of a tile of
// columns stay in the first-level cache: four rows cost one load and store of the results.
constexpr size_t kRowsAtOnce = 4;

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

}  // namespace skiff::HWY_NAMESPACE
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

}  // namespace

namespace reduction {

double SumOfBlock(const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(SumOfBlock)(x, static_cast<size_t>(count));
}

double SumOfSquaresOfBlock(const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquaresOfBlock)(x, static_cast<size_t>(count));
}

double SumOfProductsOfBlock(const float* a, const float* b, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(SumOfProductsOfBlock)(a, b, static_cast<size_t>(count));
}

double ProductOfBlock(const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(ProductOfBlock)(x, static_cast<size_t>(count));
}

float MaxOfBlock(const float* x, int64_t count, float start) {
  return HWY_DYNAMIC_DISPATCH(MaxOfBlock)(x, static_cast<size_t>(count), start);
}

float MinOfBlock(const float* x, int64_t count, float start) {
  return HWY_DYNAMIC_DISPATCH(MinOfBlock)(x, static_cast<size_t>(count), start);
}

void AddColumns(const float* x, int64_t stride, int64_t rows, int64_t columns, double* totals) {
  HWY_DYNAMIC_DISPATCH(AddColumns)
  (x, static_cast<size_t>(stride), static_cast<size_t>(rows), static_cast<size_t>(columns), totals);
}

void MultiplyColumns(const float* x, int64_t stride, int64_t rows, int64_t columns,
                     double* products) {
  HWY_DYNAMIC_DISPATCH(MultiplyColumns)
  (x, static_cast<size_t>(stride), static_cast<size_t>(rows), static_cast<size_t>(columns),
   products);
}

void MaxOfColumns(const float* x, int64_t stride, int64_t rows, int64_t columns, float* best) {
  HWY_DYNAMIC_DISPATCH(MaxOfColumns)
  (x, static_cast<size_t>(stride), static_cast<size_t>(rows), static_cast<size_t>(columns), best);
}

void MinOfColumns(const float* x, int64_t stride, int64_t rows, int64_t columns, float* best) {
  HWY_DYNAMIC_DISPATCH(MinOfColumns)
  (x, static_cast<size_t>(stride), static_cast<size_t>(rows), static_cast<size_t>(columns), best);
}

void AddFloats(const float* a, const float* b, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(AddFloats)(a, b, out, static_cast<size_t>(count));
}

void AddFloatsToDoubles(const float* x, double* sums, int64_t count) {
  HWY_DYNAMIC_DISPATCH(AddFloatsToDoubles)(x, sums, static_cast<size_t>(count));
}

void ScaleFloats(const float* x, float factor, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(ScaleFloats)(x, factor, out, static_cast<size_t>(count));
}

void SpreadOne(const float* x, const float* out, const float* gradient, float* dx, int64_t count) {
  HWY_DYNAMIC_DISPATCH(SpreadOne)(x, out, gradient, dx, static_cast<size_t>(count));
}

void SpreadEach(const float* x, const float* out, const float* gradient, float* dx, int64_t count) {
  HWY_DYNAMIC_DISPATCH(SpreadEach)(x, out, gradient, dx, static_cast<size_t>(count));
}

}  // namespace reduction
}  // namespace skiff
#endif  // HWY_ONCE
