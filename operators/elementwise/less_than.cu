// CUDA kernels of less_than.
#include "operators/elementwise/kernels/cuda_comparison.cuh"

namespace skiff {
namespace {

struct LessThan {
  template <typename T>
  __device__ bool operator()(T x, T y) const {
    return x < y;
  }
};

}  // namespace

void RegisterLessThanCuda(OpRegistry& registry) {
  AddCudaComparison<LessThan>(registry, "less_than");
}

}  // namespace skiff
