// CUDA kernels of logical_xor.
#include "operators/elementwise/kernels/cuda_comparison.cuh"

namespace skiff {
namespace {

struct LogicalXor {
  template <typename T>
  __device__ bool operator()(T x, T y) const {
    return (x != T{0}) != (y != T{0});
  }
};

}  // namespace

void RegisterLogicalXorCuda(OpRegistry& registry) {
  AddCudaComparison<LogicalXor>(registry, "logical_xor");
}

}  // namespace skiff
