// CUDA kernels of elementwise_max and elementwise_max_grad; elementwise_max.cc has the formulas.
#include "operators/elementwise/kernels/cuda_binary.cuh"

namespace skiff {
namespace {

struct Max {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    return x > y ? x : y;
  }
};

struct MaxXGrad {
  static constexpr bool kReadsX = true;
  static constexpr bool kReadsY = true;

  template <typename T>
  __device__ T operator()(T x, T y, T, T dout) const {
    return x > y ? dout : T{0};
  }
};

struct MaxYGrad {
  static constexpr bool kReadsX = true;
  static constexpr bool kReadsY = true;

  template <typename T>
  __device__ T operator()(T x, T y, T, T dout) const {
    return x <= y ? dout : T{0};
  }
};

}  // namespace

void RegisterElementwiseMaxCuda(OpRegistry& registry) {
  AddCudaBinary<Max>(registry, "elementwise_max");
  AddCudaBinaryGradients<MaxXGrad, MaxYGrad>(registry, "elementwise_max");
}

}  // namespace skiff
