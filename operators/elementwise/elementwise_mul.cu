// CUDA kernels of elementwise_mul and elementwise_mul_grad; elementwise_mul.cc has the formulas.
#include "operators/common/cuda_integer.cuh"
#include "operators/common/cuda_values_kernels.h"
#include "operators/elementwise/kernels/cuda_binary.cuh"

namespace skiff {
namespace {

struct Mul {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    return DeviceMul(x, y);
  }
};

struct MulXGrad {
  static constexpr bool kReadsX = false;
  static constexpr bool kReadsY = true;

  template <typename T>
  __device__ T operator()(T, T y, T, T dout) const {
    return dout * y;
  }
};

struct MulYGrad {
  static constexpr bool kReadsX = true;
  static constexpr bool kReadsY = false;

  template <typename T>
  __device__ T operator()(T x, T, T, T dout) const {
    return dout * x;
  }
};

}  // namespace

void RegisterElementwiseMulCuda(OpRegistry& registry) {
  AddCudaBinary<Mul>(registry, "elementwise_mul");
  AddCudaValuesKernels(registry, "elementwise_mul");
  AddCudaBinaryGradients<MulXGrad, MulYGrad>(registry, "elementwise_mul");
}

}  // namespace skiff
