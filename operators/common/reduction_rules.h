// The rules of reductions: how sums, products, extremes and quantifiers reduce a row or columns,
// and join partial results. Internal to array_reduction.cc and reduce.cc.
//
// A rule is a struct with these members:
// - Value: the type of the elements; Carry: the type of a partial result;
// - Identity(): the partial result of no elements;
// - OfRow(): reduces contiguous elements;
// - AddColumns(): reduces the elements of each column into partial results;
// - Join(): combines two partial results.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "framework/base/parallel.h"
#include "operators/common/cpu/reduce_loops.h"
#include "operators/common/sum_type.h"

namespace skiff::reduction {

// The number of elements, or rows, summed in float before the sum goes on in float64.
inline constexpr int64_t kBlock = 4096;
inline constexpr int64_t kBlockRows = 64;
// A part of the work with fewer elements isn't worth a thread.
inline constexpr int64_t kGrain = 16384;
inline constexpr int64_t kMaxParts = 256;

// Returns the size of the parts into which FoldParts splits `count` elements: at most kMaxParts of
// them.
inline int64_t PartSize(int64_t count) {
  return std::max(kGrain, (count + kMaxParts - 1) / kMaxParts);
}

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

// Returns the sum of x[0, count). The block bounds the rounding error of float: within a block,
// each lane of a vector adds up some hundred elements at most.
template <typename T>
SumOf<T> BlockSum(const T* x, int64_t count) {
  SumOf<T> sum = 0;
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t i = 0; i < count; i += kBlock) {
      sum += SumOfBlock(x + i, std::min(kBlock, count - i));
    }
  } else {
    for (int64_t i = 0; i < count; ++i) sum += static_cast<SumOf<T>>(x[i]);
  }
  return sum;
}

// Adds the sum of column j to totals[j].
template <typename T>
void AddColumnSums(const T* x, int64_t stride, int64_t rows, int64_t columns, SumOf<T>* totals) {
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t row = 0; row < rows; row += kBlockRows) {
      AddColumns(x + row * stride, stride, std::min(kBlockRows, rows - row), columns, totals);
    }
  } else {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < columns; ++j) totals[j] += static_cast<SumOf<T>>(x[row * stride + j]);
    }
  }
}

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
  static double OfRow(const float* x, int64_t count) { return ProductOfBlock(x, count); }
  static void AddColumns(const float* x, int64_t stride, int64_t rows, int64_t columns,
                         double* carries) {
    MultiplyColumns(x, stride, rows, columns, carries);
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
  // Comparing in double is exact, so the rule is written once.
  static float Join(float best, float value) { return Extreme<double, kIsMax>::Join(best, value); }
  static float OfRow(const float* x, int64_t count) {
    return kIsMax ? MaxOfBlock(x, count, Identity()) : MinOfBlock(x, count, Identity());
  }
  static void AddColumns(const float* x, int64_t stride, int64_t rows, int64_t columns,
                         float* carries) {
    if (kIsMax) {
      MaxOfColumns(x, stride, rows, columns, carries);
    } else {
      MinOfColumns(x, stride, rows, columns, carries);
    }
  }
};

// Whether all (kOfAll) or any of some bools are true. The search in a row ends at the first false
// (true) one.
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

}  // namespace skiff::reduction
