// CUDA kernels of logical_and.
#include "operators/elementwise/kernels/cuda_comparison.cuh"

namespace skiff {
namespace {

struct LogicalAnd {
  template <typename T>
  __device__ bool operator()(T x, T y) const {
    return x != T{0} && y != T{0};
  }
};

}  // namespace

void RegisterLogicalAndCuda(OpRegistry& registry) {
  AddCudaComparison<LogicalAnd>(registry, "logical_and");
}

}  // namespace skiff
