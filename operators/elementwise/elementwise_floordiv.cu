// CUDA kernels of elementwise_floordiv; elementwise_floordiv.cc has the formula.
#include <cmath>
#include <type_traits>

#include "operators/elementwise/kernels/cuda_binary.cuh"
#include "operators/elementwise/kernels/cuda_division.cuh"

namespace skiff {
namespace {

struct FloorDiv {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      const T quotient = DeviceDivide(x, y);
      if (y == T{-1}) return quotient;  // the lowest number % -1 would overflow
      const T rest = x % y;
      return rest != 0 && (rest < 0) != (y < 0) ? quotient - 1 : quotient;
    } else {
      if (y == T{0}) return x / y;
      // Divides x less its remainder, not x: 1 / 0.1f rounds to 10, but the answer is 9.
      const T rest = std::fmod(x, y);
      const T quotient = std::round((x - rest) / y);
      return rest != T{0} && (rest < T{0}) != (y < T{0}) ? quotient - T{1} : quotient;
    }
  }
};

}  // namespace

void RegisterElementwiseFloordivCuda(OpRegistry& registry) {
  AddCudaFloatBinary<FloorDiv>(registry, "elementwise_floordiv");
  AddCudaIntegerDivision<FloorDiv>(registry, "elementwise_floordiv");
}

}  // namespace skiff
