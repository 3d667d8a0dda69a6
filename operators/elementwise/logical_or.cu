// CUDA kernels of logical_or.
#include "operators/elementwise/kernels/cuda_comparison.cuh"

namespace skiff {
namespace {

struct LogicalOr {
  template <typename T>
  __device__ bool operator()(T x, T y) const {
    return x != T{0} || y != T{0};
  }
};

}  // namespace

void RegisterLogicalOrCuda(OpRegistry& registry) {
  AddCudaComparison<LogicalOr>(registry, "logical_or");
}

}  // namespace skiff
