// Lines that are too few, and too long, for kernels that give each to a block or a thread
// (cuda_lines.cuh): a sum for each line by CudaFold, which keeps the device busy with a single one,
// and then a pass over all elements.
#pragma once

#include <cstdint>

#include "operators/common/axis_extents.h"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_fold_view.h"

namespace skiff {

// So many lines at most are few.
inline constexpr int64_t kMostLongLines = 32768;

// Returns whether the lines of cuda_lines.cuh would leave most of a device idle: fewer than it has
// room for blocks, or of an inner axis, for threads; and long enough to be worth two passes. The
// room of a device is a guess: about 100 multiprocessors.
inline bool AreFewLongLines(const AxisExtents& extents) {
  constexpr int64_t kLongLine = 4096;
  constexpr int64_t kBlocks = 512;
  return extents.length >= kLongLine &&
         extents.lines() < (extents.inner == 1 ? kBlocks : kMostLongLines);
}

// Returns the view of CudaFold that reduces the lines.
inline CudaFoldView ViewOfLines(const AxisExtents& extents) {
  CudaFoldView view;
  view.AddOutside(extents.inner, false);
  view.AddOutside(extents.length, true);
  view.AddOutside(extents.outer, false);
  return view;
}

// The lines of the elements of a pack, which begins at element `i` of all: one line, or neighbours.
class CudaLinesOfPack {
 public:
  __device__ CudaLinesOfPack(const AxisExtents& extents, int64_t i) : step_(extents.inner > 1) {
    const CudaDivision at = Divide(i, extents.length * extents.inner);
    first_ = at.quotient * extents.inner + (step_ == 0 ? 0 : Divide(at.rest, extents.inner).rest);
  }

  // Returns the line of the pack's element k.
  __device__ int64_t operator[](int k) const { return first_ + k * step_; }

 private:
  int64_t first_;
  int step_;
};

// Returns the period of ForEachPackOnDevice for which CudaLinesOfPack is right.
inline int64_t PeriodOfLines(const AxisExtents& extents) {
  return extents.inner == 1 ? extents.length : extents.inner;
}

// A rule of CudaFold: sums[i] is the sum of term(place) over the elements of line i.
template <class Term>
struct CudaLineSum {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    *carry += term(place);
  }
  __device__ void Finish(int64_t line, Carry sum) const { sums[line] = sum; }

  Term term;
  double* sums;
};

// Terms: the square of an element, and its product with an element of another array. Terms are
// float64, which holds the terms of all float32 numbers and costs no more, as the sum is float64.
template <typename T>
struct SquareOf {
  __device__ double operator()(int64_t i) const {
    const auto value = static_cast<double>(x[i]);
    return value * value;
  }
  const T* x;
};

template <typename T>
struct ProductOf {
  __device__ double operator()(int64_t i) const {
    return static_cast<double>(x[i]) * static_cast<double>(y[i]);
  }
  const T* x;
  const T* y;
};

}  // namespace skiff
