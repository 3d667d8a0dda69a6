// CUDA kernels of greater_than.
#include "operators/elementwise/kernels/cuda_comparison.cuh"

namespace skiff {
namespace {

struct GreaterThan {
  template <typename T>
  __device__ bool operator()(T x, T y) const {
    return x > y;
  }
};

}  // namespace

void RegisterGreaterThanCuda(OpRegistry& registry) {
  AddCudaComparison<GreaterThan>(registry, "greater_than");
}

}  // namespace skiff
