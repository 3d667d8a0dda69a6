// CUDA kernels of greater_equal.
#include "operators/elementwise/kernels/cuda_comparison.cuh"

namespace skiff {
namespace {

struct GreaterEqual {
  template <typename T>
  __device__ bool operator()(T x, T y) const {
    return x >= y;
  }
};

}  // namespace

void RegisterGreaterEqualCuda(OpRegistry& registry) {
  AddCudaComparison<GreaterEqual>(registry, "greater_equal");
}

}  // namespace skiff
