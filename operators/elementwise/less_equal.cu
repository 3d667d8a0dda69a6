// CUDA kernels of less_equal.
#include "operators/elementwise/kernels/cuda_comparison.cuh"

namespace skiff {
namespace {

struct LessEqual {
  template <typename T>
  __device__ bool operator()(T x, T y) const {
    return x <= y;
  }
};

}  // namespace

void RegisterLessEqualCuda(OpRegistry& registry) {
  AddCudaComparison<LessEqual>(registry, "less_equal");
}

}  // namespace skiff
