// CUDA kernels of equal.
#include "operators/elementwise/kernels/cuda_comparison.cuh"

namespace skiff {
namespace {

struct Equal {
  template <typename T>
  __device__ bool operator()(T x, T y) const {
    return x == y;
  }
};

}  // namespace

void RegisterEqualCuda(OpRegistry& registry) { AddCudaComparison<Equal>(registry, "equal"); }

}  // namespace skiff
