#include "operators/common/reduce.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "framework/base/parallel.h"

// The loops below are compiled once per instruction set that @highway leaves enabled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/common/reduce.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adds up transform(x) in four vectors, so that additions overlap.
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

void AddFloats(const float* a, const float* b, float* out, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
  for (; i < count; ++i) out[i] = a[i] + b[i];
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

// totals[j] += the sum of column j, for a block of few rows.
void AddColumns(const float* HWY_RESTRICT x, size_t stride, size_t rows, size_t columns,
                double* HWY_RESTRICT totals) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN float sums[HWY_MAX_BYTES / sizeof(float) * 2];
  size_t j = 0;
  for (; j + 2 * lanes <= columns; j += 2 * lanes) {
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    for (size_t row = 0; row < rows; ++row) {
      sum0 = hn::Add(sum0, hn::LoadU(d, x + row * stride + j));
      sum1 = hn::Add(sum1, hn::LoadU(d, x + row * stride + j + lanes));
    }
    hn::Store(sum0, d, sums);
    hn::Store(sum1, d, sums + lanes);
    for (size_t i = 0; i < 2 * lanes; ++i) totals[j + i] += static_cast<double>(sums[i]);
  }
  for (; j < columns; ++j) {
    float sum = 0;
    for (size_t row = 0; row < rows; ++row) sum += x[row * stride + j];
    totals[j] += static_cast<double>(sum);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(SumOfBlock);
HWY_EXPORT(SumOfSquaresOfBlock);
HWY_EXPORT(AddFloats);
HWY_EXPORT(ScaleFloats);
HWY_EXPORT(AddColumns);

// What one float accumulates before float64 takes over.
constexpr int64_t kBlock = 4096;
constexpr int64_t kBlockRows = 64;
// Below this many elements a part of the work isn't worth a thread.
constexpr int64_t kGrain = 16384;
constexpr int64_t kMaxParts = 256;
constexpr int64_t kColumns = 64;

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

// Splits [0, count) into parts that depend on count alone and adds their sums in order.
template <typename Total, typename PartSum>
Total SumParts(int64_t count, const PartSum& part_sum) {
  const int64_t part = std::max(kGrain, (count + kMaxParts - 1) / kMaxParts);
  const int64_t parts = (count + part - 1) / part;
  if (parts <= 1) return part_sum(0, count);
  std::array<Total, kMaxParts> sums;
  ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      sums[static_cast<size_t>(i)] = part_sum(i * part, std::min(part, count - i * part));
    }
  });
  Total total = 0;
  for (int64_t i = 0; i < parts; ++i) total += sums[static_cast<size_t>(i)];
  return total;
}

// totals[j] += the sum of column j.
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

}  // namespace

template <typename T>
SumOf<T> Sum(const T* x, int64_t count) {
  return SumParts<SumOf<T>>(count,
                            [x](int64_t begin, int64_t size) { return BlockSum(x + begin, size); });
}

template <typename T>
double SumOfSquares(const T* x, int64_t count) {
  return SumParts<double>(
      count, [x](int64_t begin, int64_t size) { return BlockSumOfSquares(x + begin, size); });
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
  int64_t stride = 1;
  bool in_run = true;
  bool previous_is_reduced = true;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const int64_t size = shape[axis];
    const bool reduced = is_reduced[static_cast<size_t>(axis)];
    if (size == 1) continue;
    if (stride == 1) run_is_reduced_ = previous_is_reduced = reduced;
    in_run = in_run && reduced == run_is_reduced_;
    std::vector<Dim>& dims = reduced ? reduced_ : kept_;
    if (in_run) {
      run_length_ *= size;
    } else if (reduced == previous_is_reduced && !dims.empty()) {
      dims.front().size *= size;
    } else {
      dims.insert(dims.begin(), {size, stride});
    }
    previous_is_reduced = reduced;
    stride *= size;
    // Without elements there is nothing to walk through: a count below becomes 0.
    if (size == 0) break;
  }
  for (const Dim& dim : kept_) kept_count_ *= dim.size;
  for (const Dim& dim : reduced_) reduced_count_ *= dim.size;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!is_reduced[static_cast<size_t>(axis)]) output_count_ *= shape[axis];
  }
}

int64_t AxisReduction::Offset(const std::vector<Dim>& dims, int64_t index) {
  int64_t offset = 0;
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    offset += index % dim->size * dim->stride;
    index /= dim->size;
  }
  return offset;
}

template <typename T>
void AxisReduction::SumRows(const T* x, T* out) const {
  if (kept_count_ == 1 && reduced_count_ == 1) {
    *out = static_cast<T>(skiff::Sum(x, run_length_));
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kGrain / (reduced_count_ * run_length_));
  ParallelFor(kept_count_, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = x + Offset(kept_, i);
      SumOf<T> sum = 0;
      for (int64_t r = 0; r < reduced_count_; ++r) {
        sum += BlockSum(from + Offset(reduced_, r), run_length_);
      }
      out[i] = static_cast<T>(sum);
    }
  });
}

template <typename T>
void AxisReduction::SumColumns(const T* x, T* out) const {
  const int64_t tiles = (run_length_ + kColumns - 1) / kColumns;
  const int64_t tile_work = reduced_count_ * std::min(kColumns, run_length_);
  const int64_t grain = std::max<int64_t>(1, kGrain / tile_work);
  const Dim rows = reduced_.empty() ? Dim{1, 0} : reduced_.back();
  ParallelFor(kept_count_ * tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % tiles * kColumns;
      const int64_t columns = std::min(kColumns, run_length_ - column);
      const T* from = x + Offset(kept_, i / tiles) + column;
      SumOf<T> sums[kColumns] = {};
      for (int64_t r = 0; r < reduced_count_; r += rows.size) {
        AddColumnSums(from + Offset(reduced_, r), rows.stride, rows.size, columns, sums);
      }
      T* to = out + i / tiles * run_length_ + column;
      for (int64_t j = 0; j < columns; ++j) to[j] = static_cast<T>(sums[j]);
    }
  });
}

template <typename T>
void AxisReduction::Sum(const T* x, T* out) const {
  if (output_count_ == 0) return;
  if (reduced_count_ * kept_count_ * run_length_ == 0) {
    std::fill(out, out + output_count_, T{0});
  } else if (run_is_reduced_) {
    SumRows(x, out);
  } else {
    SumColumns(x, out);
  }
}

template <typename T>
void AxisReduction::Broadcast(const T* sums, T factor, T* x) const {
  if (reduced_count_ * kept_count_ * run_length_ == 0) return;
  const int64_t part = std::min(run_length_, kGrain);
  const int64_t parts = (run_length_ + part - 1) / part;
  const int64_t grain = std::max<int64_t>(1, kGrain / part);
  ParallelFor(kept_count_ * reduced_count_ * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = i % parts * part;
      const int64_t size = std::min(part, run_length_ - start);
      const int64_t kept = i / parts / reduced_count_;
      T* to = x + Offset(kept_, kept) + Offset(reduced_, i / parts % reduced_count_) + start;
      if (run_is_reduced_) {
        std::fill(to, to + size, factor * sums[kept]);
      } else {
        ScaleArray(sums + kept * run_length_ + start, factor, to, size);
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
template void AddArrays(const float*, const float*, float*, int64_t);
template void AddArrays(const double*, const double*, double*, int64_t);
template void AddArrays(const int32_t*, const int32_t*, int32_t*, int64_t);
template void AddArrays(const int64_t*, const int64_t*, int64_t*, int64_t);
template void ScaleArray(const float*, float, float*, int64_t);
template void ScaleArray(const double*, double, double*, int64_t);
template void AxisReduction::Sum(const float*, float*) const;
template void AxisReduction::Sum(const double*, double*) const;
template void AxisReduction::Sum(const int32_t*, int32_t*) const;
template void AxisReduction::Sum(const int64_t*, int64_t*) const;
template void AxisReduction::Broadcast(const float*, float, float*) const;
template void AxisReduction::Broadcast(const double*, double, double*) const;
template void AxisReduction::Broadcast(const int32_t*, int32_t, int32_t*) const;
template void AxisReduction::Broadcast(const int64_t*, int64_t, int64_t*) const;

}  // namespace skiff
#endif  // HWY_ONCE
