// CUDA kernels of mul and mul_grad; mul.cc has the formulas.
#include "operators/math/kernels/cuda_matrix_product.cuh"

namespace skiff {

void RegisterMulCuda(OpRegistry& registry) {
  AddCudaMatrixProductKernels(registry, "mul", MulProduct);
}

}  // namespace skiff
