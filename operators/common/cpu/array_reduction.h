// Sums, products and extremes over whole arrays, and the element-wise loops that go with them.
//
// Floating-point sums are carried in float64 across blocks of some thousand elements, in an order
// that depends only on the sizes: the number of threads doesn't change results. Integers wrap
// around. T is float, double, int32_t or int64_t.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/dtype.h"
#include "operators/common/sum_type.h"

namespace skiff {

// Returns the sum of x[0, count). Threaded.
template <typename T>
SumOf<T> Sum(const T* x, int64_t count);
// Returns the sum of x[i]². Threaded; T is float or double. Right for float32 numbers of any size,
// though most sums run in float32.
template <typename T>
double SumOfSquares(const T* x, int64_t count);

// The sums of squares of several arrays, threaded over all arrays together, so that many small
// arrays cost no more than a large one. Each sum has the same bits as SumOfSquares. T is float or
// double.
template <typename T>
class SumsOfSquares {
 public:
  // The elements have type T, or, if T is float, may have a two-byte dtype (half.h); they are then
  // squared as floats.
  struct Array {
    const void* data = nullptr;
    DType dtype = kDTypeOf<T>;
    int64_t count = 0;
  };

  // `counts` has the number of elements of each array, or a larger one.
  explicit SumsOfSquares(const std::vector<int64_t>& counts);

  int64_t workspace_bytes() const { return part_count() * static_cast<int64_t>(sizeof(double)); }
  // Sets sums[i] to the sum of arrays[i][j]², for as many arrays as there are counts.
  void Compute(const std::vector<Array>& arrays, void* workspace, double* sums);

 private:
  int64_t part_count() const { return first_parts_.back(); }
  // Numbers the parts of all arrays through.
  template <typename CountOf>
  void SetParts(const CountOf& count_of);

  std::vector<int64_t> first_parts_;  // of each array, and at the end the number of all parts
};

// Returns the sum of a[i] · b[i]. Threaded. Right for float32 numbers of any size, except for
// products below 1.2e-38, which lose digits or vanish.
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

}  // namespace skiff
