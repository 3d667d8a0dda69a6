// Sums over arrays and over axes of tensors.
//
// Floating point is added up in float64 across blocks of some thousand elements, in an order that
// depends on the sizes alone: results don't change with the number of threads. Integers
// wrap around. T is float, double, int32_t or int64_t.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "framework/tensor/shape.h"

namespace skiff {

// What a sum of T is carried in; of integers modulo 2^64, which is what two's complement says once
// it is cast to T.
template <typename T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

// The sum of x[0, count). Threaded.
template <typename T>
SumOf<T> Sum(const T* x, int64_t count);
// The sum of x[i]². Threaded; T is float or double.
template <typename T>
double SumOfSquares(const T* x, int64_t count);

// out[i] = a[i] + b[i] on the calling thread; out may be a or b.
template <typename T>
void AddArrays(const T* a, const T* b, T* out, int64_t count);

// out[i] = factor * x[i] on the calling thread; out may be x. T is float or double.
template <typename T>
void ScaleArray(const T* x, T factor, T* out, int64_t count);

// How summing over some axes of a tensor walks through memory. Neighbouring axes of one kind are
// merged, so a few nested loops do for any shape.
class AxisReduction {
 public:
  // Axes whose `is_reduced` is true are summed. The shape must be known.
  AxisReduction(const Shape& shape, const std::vector<bool>& is_reduced);

  int64_t output_count() const { return output_count_; }

  // out[output_count()] = sums of x; no overlap. Threaded.
  template <typename T>
  void Sum(const T* x, T* out) const;
  // The reverse: every element of x[shape] = factor * the element of `sums` that it was added to.
  // Threaded.
  template <typename T>
  void Broadcast(const T* sums, T factor, T* x) const;

 private:
  struct Dim {
    int64_t size;
    int64_t stride;
  };
  // The offset in x of number `index` of the dims, the last of them fastest.
  static int64_t Offset(const std::vector<Dim>& dims, int64_t index);
  template <typename T>
  void SumRows(const T* x, T* out) const;
  template <typename T>
  void SumColumns(const T* x, T* out) const;

  // The innermost run of contiguous elements, of one kind.
  int64_t run_length_ = 1;
  bool run_is_reduced_ = true;
  // The dims outside of the run.
  std::vector<Dim> kept_;
  std::vector<Dim> reduced_;
  int64_t kept_count_ = 1;
  int64_t reduced_count_ = 1;
  int64_t output_count_ = 1;
};

}  // namespace skiff
