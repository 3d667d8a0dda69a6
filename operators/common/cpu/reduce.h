// Reductions over axes of tensors: sums, products, extremes, and the reverse of some.
//
// Floating-point sums are carried in float64 across blocks of some thousand elements, in an order
// that depends only on the sizes: the number of threads doesn't change results. Integers wrap
// around. T is float, double, int32_t or int64_t. array_reduction.h reduces whole arrays.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "framework/base/parallel.h"
#include "framework/tensor/shape.h"

namespace skiff {

// One for each axis of a shape; the rest is false.
using AxisFlags = std::array<bool, Shape::kMaxRank>;

// A reduction over some axes of a tensor. Neighbouring axes of one kind are merged, so a few nested
// loops suffice for any shape.
//
// Reductions read x[shape] and write out[output_count()], which don't overlap. All are threaded.
// Nothing here allocates memory, so a kernel can make the object in each run, for its rows.
class AxisReduction {
 public:
  // Reduces the axes whose `is_reduced` is true. The shape must be known.
  AxisReduction(const Shape& shape, const AxisFlags& is_reduced);

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
    int64_t size = 1;
    int64_t stride = 0;
  };
  // Nested loops, the last dim fastest.
  class Dims {
   public:
    bool empty() const { return count_ == 0; }
    Dim& outermost() { return dims_[dims_.size() - count_]; }
    const Dim& innermost() const { return dims_.back(); }
    int64_t iterations() const;
    void AddOutside(const Dim& dim);
    // Returns the offset in x of an iteration.
    int64_t Offset(int64_t iteration) const;

   private:
    std::array<Dim, Shape::kMaxRank> dims_;  // the last count_
    size_t count_ = 0;
  };
  // Reduces by the rules of reduction_rules.h.
  class Folding;

  // The innermost run of contiguous elements, of one kind.
  int64_t run_length_ = 1;
  bool run_is_reduced_ = true;
  // The dims outside the run.
  Dims kept_;
  Dims reduced_;
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
      const int64_t offset = kept_.Offset(kept) + reduced_.Offset(i / parts % reduced_count_);
      body(offset + start, size, run_is_reduced_ ? kept : kept * run_length_ + start,
           run_is_reduced_);
    }
  });
}

template <typename Body>
void AxisReduction::ForEachElementOf(int64_t output, const Body& body) const {
  const int64_t kept = run_is_reduced_ ? output : output / run_length_;
  const int64_t first = kept_.Offset(kept) + (run_is_reduced_ ? 0 : output % run_length_);
  for (int64_t r = 0; r < reduced_count_; ++r) {
    const int64_t row = first + reduced_.Offset(r);
    for (int64_t i = 0; i < (run_is_reduced_ ? run_length_ : 1); ++i) body(row + i);
  }
}

}  // namespace skiff
