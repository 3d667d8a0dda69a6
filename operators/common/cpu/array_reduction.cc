#include "operators/common/cpu/array_reduction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "framework/base/parallel.h"
#include "operators/common/half_arrays.h"
#include "operators/common/reduction_rules.h"

namespace skiff {
namespace {

using reduction::Addition;
using reduction::BlockSum;
using reduction::Extreme;
using reduction::FoldParts;
using reduction::kBlock;
using reduction::PartSize;

// In float64, which holds the product of any two float32 numbers.
double ProductsInDoubles(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

bool IsZero(const float* x, int64_t count) {
  uint32_t bits = 0;
  for (int64_t i = 0; i < count; ++i) bits |= std::bit_cast<uint32_t>(x[i]);
  return bits << 1U == 0;
}

// The squares of numbers above 1.8e19 overflow float32, and those of numbers below 1.1e-19 lose
// digits or vanish; sums in which that shows are computed again.
template <typename T>
double BlockSumOfSquares(const T* x, int64_t count) {
  double sum = 0;
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t i = 0; i < count; i += kBlock) {
      sum += reduction::SumOfSquaresOfBlock(x + i, std::min(kBlock, count - i));
    }
    // A square that lost digits is off by less than 2^-149: even 2^30 of these don't change a sum
    // of this size.
    constexpr double kLeast = 0x1p-90;
    const bool is_right = (sum >= kLeast && std::isfinite(sum)) || IsZero(x, count);
    if (!is_right) sum = ProductsInDoubles(x, x, count);
  } else {
    for (int64_t i = 0; i < count; ++i) sum += x[i] * x[i];
  }
  return sum;
}

// The same for an array that may have a two-byte dtype. It is converted block by block, so that the
// floats stay in the first-level cache.
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
      sum += reduction::SumOfProductsOfBlock(a + i, b + i, std::min(kBlock, count - i));
    }
    // Products overflow float32 before their sum overflows it.
    if (!std::isfinite(sum)) sum = ProductsInDoubles(a, b, count);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      sum += static_cast<SumOf<T>>(a[i]) * static_cast<SumOf<T>>(b[i]);
    }
  }
  return sum;
}

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

// So threads share many small arrays as evenly as a single large one.
template <typename T>
template <typename CountOf>
void SumsOfSquares<T>::SetParts(const CountOf& count_of) {
  for (size_t i = 0; i + 1 < first_parts_.size(); ++i) {
    const int64_t count = count_of(i);
    first_parts_[i + 1] = first_parts_[i] + (count + PartSize(count) - 1) / PartSize(count);
  }
}

template <typename T>
SumsOfSquares<T>::SumsOfSquares(const std::vector<int64_t>& counts)
    : first_parts_(counts.size() + 1, 0) {
  SetParts([&](size_t i) { return counts[i]; });
}

template <typename T>
void SumsOfSquares<T>::Compute(const std::vector<Array>& arrays, void* workspace, double* sums) {
  SetParts([&](size_t i) { return arrays[i].count; });
  auto* of_parts = static_cast<double*>(workspace);
  ParallelFor(part_count(), 1, [&](int64_t begin, int64_t end) {
    // The array that the first part belongs to; empty arrays have no part and are skipped.
    const auto above = std::ranges::upper_bound(first_parts_, begin);
    auto array = static_cast<size_t>(above - first_parts_.begin()) - 1;
    for (int64_t part = begin; part < end; ++part) {
      while (part >= first_parts_[array + 1]) ++array;
      const int64_t count = arrays[array].count;
      const int64_t size = PartSize(count);
      const int64_t first = (part - first_parts_[array]) * size;
      of_parts[part] = BlockSumOfSquares<T>(arrays[array], first, std::min(size, count - first));
    }
  });
  for (size_t i = 0; i < arrays.size(); ++i) {
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
  reduction::AddFloatsToDoubles(x, sums, count);
}

template <typename T>
void AddArrays(const T* a, const T* b, T* out, int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    reduction::AddFloats(a, b, out, count);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      // Unsigned for integers, whose overflow is defined: it wraps around.
      out[i] = static_cast<T>(static_cast<SumOf<T>>(a[i]) + static_cast<SumOf<T>>(b[i]));
    }
  }
}

template <typename T>
void ScaleArray(const T* x, T factor, T* out, int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    reduction::ScaleFloats(x, factor, out, count);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = factor * x[i];
  }
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

}  // namespace skiff
