// CUDA kernels of mul and mul_grad; mul.cc has the formulas.
#include "operators/math/kernels/cuda_matrix_product.cuh"

namespace skiff {

void RegisterMulCuda(OpRegistry& registry) {
  AddCudaMatrixProductKernels<float>(registry, "mul", MulProduct);
  AddCudaMatrixProductKernels<double>(registry, "mul", MulProduct);
}

}  // namespace skiff
