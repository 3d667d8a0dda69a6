// CUDA kernels of matmul and matmul_grad; matmul.cc has the formulas.
#include "operators/math/kernels/cuda_matrix_product.cuh"

namespace skiff {

void RegisterMatmulCuda(OpRegistry& registry) {
  AddCudaMatrixProductKernels(registry, "matmul", MatmulProduct);
}

}  // namespace skiff
