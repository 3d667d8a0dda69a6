// CUDA kernels of bitwise_not.
#include <type_traits>

#include "framework/op/registry.h"
#include "operators/elementwise/kernels/cuda_predicate.cuh"

namespace skiff {
namespace {

#include "operators/elementwise/kernels/bitwise_not_formula-inl.h"

// The formula of bools, which are bytes that are 0 or 1.
struct BitwiseNotOfBool {
  template <class V>
  __device__ bool Value(V x) const {
    return x == V{0};
  }
};

}  // namespace

void RegisterBitwiseNotCuda(OpRegistry& registry) {
  AddCudaUnaryForward<BitwiseNotFormula, int32_t>(registry);
  AddCudaUnaryForward<BitwiseNotFormula, int64_t>(registry);
  AddCudaUnaryKernel(registry, {.op = BitwiseNotFormula::kFacts}, DType::kBool,
                     cuda_predicate::Launch<BitwiseNotOfBool, uint8_t>);
}

}  // namespace skiff
