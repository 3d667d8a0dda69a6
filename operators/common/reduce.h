// Sums, products and extremes over arrays and over axes of tensors.
//
// Floating-point sums are carried in float64 across blocks of some thousand elements, in an order
// that depends only on the sizes: the number of threads doesn't change results. Integers wrap
// around. T is float, double, int32_t or int64_t.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/base/parallel.h"
#include "framework/tensor/shape.h"

namespace skiff {

// The type that carries a sum of T. Integers are summed modulo 2^64, which the cast to T turns into
// two's complement.
template <typename T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

// Returns the sum of x[0, count). Threaded.
template <typename T>
SumOf<T> Sum(const T* x, int64_t count);
// Returns the sum of x[i]². Threaded; T is float or double.
template <typename T>
double SumOfSquares(const T* x, int64_t count);

// The sums of squares of several arrays, threaded over all of them together, so that many small
// arrays cost no more than one large one. Each sum has the same bits as SumOfSquares. T is float or
// double.
template <typename T>
class SumsOfSquares {
 public:
  // The elements have type T, or, if T is float, may have a two-byte dtype (half.h); they are then
  // squared as floats.
  struct Array {
    const void* data = nullptr;
    DType dtype = kDTypeOf<T>;
  };

  // `counts` has the number of elements of each array.
  explicit SumsOfSquares(std::vector<int64_t> counts);

  int64_t workspace_bytes() const { return part_count() * static_cast<int64_t>(sizeof(double)); }
  // Sets sums[i] to the sum of arrays[i][j]², for as many arrays as there are counts.
  void Add(const std::vector<Array>& arrays, void* workspace, double* sums) const;

 private:
  int64_t part_count() const { return first_parts_.back(); }

  std::vector<int64_t> counts_;
  std::vector<int64_t> first_parts_;  // of each array, and at the end the number of all parts
};

// Returns the sum of a[i] · b[i]. Threaded.
template <typename T>
SumOf<T> SumOfProducts(const T* a, const T* b, int64_t count);

// Return the largest (smallest) of x[0, count), or NaN if there is one. `count` must be at least 1.
// Run on the calling thread.
template <typename T>
T Largest(const T* x, int64_t count);
template <typename T>
T Smallest(const T* x, int64_t count);

// out[i] = a[i] + b[i] on the calling thread; out may be a or b.
template <typename T>
void AddArrays(const T* a, const T* b, T* out, int64_t count);

// sums[i] += x[i] on the calling thread.
void AddToSums(const float* x, double* sums, int64_t count);

// out[i] = factor * x[i] on the calling thread; out may be x. T is float or double.
template <typename T>
void ScaleArray(const T* x, T factor, T* out, int64_t count);

// A reduction over some axes of a tensor. Neighbouring axes of one kind are merged, so a few nested
// loops suffice for any shape.
//
// Reductions read x[shape] and write out[output_count()], which don't overlap. All are threaded.
class AxisReduction {
 public:
  // Reduces the axes whose `is_reduced` is true. The shape must be known.
  AxisReduction(const Shape& shape, const std::vector<bool>& is_reduced);

  int64_t output_count() const { return output_count_; }
  // The number of elements that make up one output.
  int64_t reduced_count() const { return reduced_elements_; }

  // Sets out to the sums of x, divided by `divisor`; integer quotients are truncated. Out is T, or
  // int64_t if T is int32_t or bool.
  template <typename T, typename Out>
  void Sum(const T* x, Out* out, int64_t divisor = 1) const;
  // The product of no elements is 1. Floating-point numbers are multiplied in float64, integers
  // wrap around.
  template <typename T>
  void Product(const T* x, T* out) const;
  // NaN wins against every number. The maximum (minimum) of no elements is the lowest (highest)
  // value of T.
  template <typename T>
  void Max(const T* x, T* out) const;
  template <typename T>
  void Min(const T* x, T* out) const;
  // For no elements, All is true and Any is false.
  void All(const bool* x, bool* out) const;
  void Any(const bool* x, bool* out) const;

  // The reverse of Sum: sets every element of x[shape] to factor * the element of `sums` that it
  // was added to.
  template <typename T>
  void Broadcast(const T* sums, T factor, T* x) const;
  // The reverse of Max and Min: sets dx to the output's gradient where x equals the output, else to
  // 0. dx may be x. T is float or double.
  template <typename T>
  void SpreadToEqual(const T* x, const T* out, const T* gradient, T* dx) const;

  // Calls body(offset in x, size, output, is_one_output) for contiguous pieces that cover x. If
  // is_one_output, all elements of the piece belong to `output`; else they belong to `output`,
  // `output` + 1, …. Threaded; `body` must not throw.
  template <typename Body>
  void ForEachPiece(const Body& body) const;
  // Calls body(offset in x) for each element that makes up an output, on the calling thread.
  template <typename Body>
  void ForEachElementOf(int64_t output, const Body& body) const;

 private:
  // The longest piece, and the number of elements worth a thread.
  static constexpr int64_t kPiece = 16384;

  struct Dim {
    int64_t size;
    int64_t stride;
  };
  // Returns the offset in x of iteration `index` of the dims, the last dim fastest.
  static int64_t Offset(const std::vector<Dim>& dims, int64_t index);
  // Sets out to finish(what Rule makes of the elements); the rules are in reduce.cc.
  template <typename Rule, typename Out, typename Finish>
  void Fold(const typename Rule::Value* x, Out* out, const Finish& finish) const;
  template <typename Rule, typename Out, typename Finish>
  void FoldRows(const typename Rule::Value* x, Out* out, const Finish& finish) const;
  template <typename Rule, typename Out, typename Finish>
  void FoldColumns(const typename Rule::Value* x, Out* out, const Finish& finish) const;

  // The innermost run of contiguous elements, of one kind.
  int64_t run_length_ = 1;
  bool run_is_reduced_ = true;
  // The dims outside the run.
  std::vector<Dim> kept_;
  std::vector<Dim> reduced_;
  // 0: x has no elements.
  int64_t kept_count_ = 1;
  int64_t reduced_count_ = 1;
  int64_t output_count_ = 1;
  int64_t reduced_elements_ = 1;
};

template <typename Body>
void AxisReduction::ForEachPiece(const Body& body) const {
  if (kept_count_ == 0) return;
  const int64_t part = std::min(run_length_, kPiece);
  const int64_t parts = (run_length_ + part - 1) / part;
  const int64_t grain = std::max<int64_t>(1, kPiece / part);
  ParallelFor(kept_count_ * reduced_count_ * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = i % parts * part;
      const int64_t size = std::min(part, run_length_ - start);
      const int64_t kept = i / parts / reduced_count_;
      const int64_t offset = Offset(kept_, kept) + Offset(reduced_, i / parts % reduced_count_);
      body(offset + start, size, run_is_reduced_ ? kept : kept * run_length_ + start,
           run_is_reduced_);
    }
  });
}

template <typename Body>
void AxisReduction::ForEachElementOf(int64_t output, const Body& body) const {
  const int64_t kept = run_is_reduced_ ? output : output / run_length_;
  const int64_t first = Offset(kept_, kept) + (run_is_reduced_ ? 0 : output % run_length_);
  for (int64_t r = 0; r < reduced_count_; ++r) {
    const int64_t row = first + Offset(reduced_, r);
    for (int64_t i = 0; i < (run_is_reduced_ ? run_length_ : 1); ++i) body(row + i);
  }
}

}  // namespace skiff
