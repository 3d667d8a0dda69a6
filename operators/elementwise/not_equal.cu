// CUDA kernels of not_equal.
#include "operators/elementwise/kernels/cuda_comparison.cuh"

namespace skiff {
namespace {

struct NotEqual {
  template <typename T>
  __device__ bool operator()(T x, T y) const {
    return x != y;
  }
};

}  // namespace

void RegisterNotEqualCuda(OpRegistry& registry) {
  AddCudaComparison<NotEqual>(registry, "not_equal");
}

}  // namespace skiff
