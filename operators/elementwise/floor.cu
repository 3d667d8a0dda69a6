// CUDA kernels of floor and floor_grad; floor.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Floor {
  template <typename T>
  __device__ T operator()(T x) const {
    return std::floor(x);
  }
};

}  // namespace

void RegisterFloorCuda(OpRegistry& registry) {
  AddCudaUnary<Floor, CudaZeroGradient>(registry, {.type = "floor"});
}

}  // namespace skiff
