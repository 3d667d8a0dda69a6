// CUDA kernels of elementwise_add and elementwise_add_grad; elementwise_add.cc has the formulas.
#include "operators/common/cuda_integer.cuh"
#include "operators/elementwise/kernels/cuda_binary.cuh"

namespace skiff {
namespace {

struct Add {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    return DeviceAdd(x, y);
  }
};

}  // namespace

void RegisterElementwiseAddCuda(OpRegistry& registry) {
  AddCudaBinary<Add>(registry, "elementwise_add");
  AddCudaBinaryGradients<CudaPassGradient, CudaPassGradient>(registry, "elementwise_add");
}

}  // namespace skiff
