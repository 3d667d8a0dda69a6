// CUDA kernels of elementwise_sub and elementwise_sub_grad; elementwise_sub.cc has the formulas.
#include "operators/common/cuda_integer.cuh"
#include "operators/elementwise/kernels/cuda_binary.cuh"

namespace skiff {
namespace {

struct Sub {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    return DeviceSub(x, y);
  }
};

struct SubYGrad {
  static constexpr bool kReadsX = false;
  static constexpr bool kReadsY = false;

  template <typename T>
  __device__ T operator()(T, T, T, T dout) const {
    return T{0} - dout;
  }
};

}  // namespace

void RegisterElementwiseSubCuda(OpRegistry& registry) {
  AddCudaBinary<Sub>(registry, "elementwise_sub");
  AddCudaBinaryGradients<CudaPassGradient, SubYGrad>(registry, "elementwise_sub");
}

}  // namespace skiff
