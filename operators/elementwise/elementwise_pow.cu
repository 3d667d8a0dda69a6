// CUDA kernels of elementwise_pow and elementwise_pow_grad; elementwise_pow.cc has the formulas.
#include <cmath>
#include <type_traits>

#include "operators/common/cuda_integer.cuh"
#include "operators/elementwise/kernels/cuda_binary.cuh"

namespace skiff {
namespace {

struct ElementwisePow {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return DeviceFromFloat<T>(
          std::round(std::pow(static_cast<double>(x), static_cast<double>(y))));
    } else {
      return std::pow(x, y);
    }
  }
};

struct PowXGrad {
  static constexpr bool kReadsX = true;
  static constexpr bool kReadsY = true;

  template <typename T>
  __device__ T operator()(T x, T y, T, T dout) const {
    return y == T{0} ? T{0} : dout * y * std::pow(x, y - T{1});
  }
};

struct PowYGrad {
  static constexpr bool kReadsX = true;
  static constexpr bool kReadsY = true;

  template <typename T>
  __device__ T operator()(T x, T y, T, T dout) const {
    // Where the power is 0 or constant, an infinite logarithm doesn't matter.
    const bool is_flat = (x == T{0} && y >= T{0}) || (x - x != T{0} && x > T{0} && y < T{0});
    return is_flat ? T{0} : dout * std::log(x) * std::pow(x, y);
  }
};

}  // namespace

void RegisterElementwisePowCuda(OpRegistry& registry) {
  AddCudaBinary<ElementwisePow>(registry, "elementwise_pow");
  AddCudaBinaryGradients<PowXGrad, PowYGrad>(registry, "elementwise_pow");
}

}  // namespace skiff
