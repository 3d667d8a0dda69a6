// CUDA kernels of elementwise_min and elementwise_min_grad; elementwise_min.cc has the formulas.
#include "operators/elementwise/kernels/cuda_binary.cuh"

namespace skiff {
namespace {

struct Min {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    return x < y ? x : y;
  }
};

struct MinXGrad {
  static constexpr bool kReadsX = true;
  static constexpr bool kReadsY = true;

  template <typename T>
  __device__ T operator()(T x, T y, T, T dout) const {
    return x < y ? dout : T{0};
  }
};

struct MinYGrad {
  static constexpr bool kReadsX = true;
  static constexpr bool kReadsY = true;

  template <typename T>
  __device__ T operator()(T x, T y, T, T dout) const {
    return x >= y ? dout : T{0};
  }
};

}  // namespace

void RegisterElementwiseMinCuda(OpRegistry& registry) {
  AddCudaBinary<Min>(registry, "elementwise_min");
  AddCudaBinaryGradients<MinXGrad, MinYGrad>(registry, "elementwise_min");
}

}  // namespace skiff
