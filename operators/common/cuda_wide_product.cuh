// Products and sums of squares of T on CUDA that T might be too narrow for.
#pragma once

#include <type_traits>

namespace skiff {

// Returns whether a product of a and b, rounded to float32, is far from overflow and from
// underflow.
template <typename T>
__device__ bool HoldsProduct(T a, T b, T product) {
  if constexpr (std::is_same_v<T, double>) return true;
  const T size = product < T{0} ? -product : product;
  return (size >= T{0x1p-100} && size <= T{0x1p100}) || a == T{0} || b == T{0};
}

// Returns a · b, rounded to T if that holds it.
template <typename T>
__device__ double WideProduct(T a, T b) {
  const T product = a * b;
  return HoldsProduct(a, b, product) ? static_cast<double>(product)
                                     : static_cast<double>(a) * static_cast<double>(b);
}

// The sum of squares that a thread adds up: in T, but for numbers whose square T doesn't hold.
template <typename T>
class CudaSquareSum {
 public:
  __device__ void Add(T x) {
    const T square = x * x;
    if (HoldsProduct(x, x, square)) {
      sum_ += square;
    } else {
      extreme_ += static_cast<double>(x) * static_cast<double>(x);
    }
  }
  __device__ double Get() const { return static_cast<double>(sum_) + extreme_; }

 private:
  T sum_ = 0;
  double extreme_ = 0;
};

}  // namespace skiff
