// CUDA kernels of elementwise_div and elementwise_div_grad; elementwise_div.cc has the formulas.
#include <type_traits>

#include "operators/elementwise/kernels/cuda_binary.cuh"
#include "operators/elementwise/kernels/cuda_division.cuh"

namespace skiff {
namespace {

struct Div {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return DeviceDivide(x, y);
    } else {
      return x / y;
    }
  }
};

struct DivXGrad {
  static constexpr bool kReadsX = false;
  static constexpr bool kReadsY = true;

  template <typename T>
  __device__ T operator()(T, T y, T, T dout) const {
    return dout / y;
  }
};

struct DivYGrad {
  static constexpr bool kReadsX = false;
  static constexpr bool kReadsY = true;

  template <typename T>
  __device__ T operator()(T, T y, T out, T dout) const {
    return -(dout * out / y);
  }
};

}  // namespace

void RegisterElementwiseDivCuda(OpRegistry& registry) {
  AddCudaFloatBinary<Div>(registry, "elementwise_div");
  AddCudaIntegerDivision<Div>(registry, "elementwise_div");
  AddCudaBinaryGradients<DivXGrad, DivYGrad>(registry, "elementwise_div");
}

}  // namespace skiff
