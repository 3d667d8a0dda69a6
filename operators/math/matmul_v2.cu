// CUDA kernels of matmul_v2 and matmul_v2_grad; matmul_v2.cc has the formulas.
#include "operators/math/kernels/cuda_matrix_product.cuh"

namespace skiff {

void RegisterMatmulV2Cuda(OpRegistry& registry) {
  AddCudaMatrixProductKernels(registry, "matmul_v2", MatmulV2Product);
}

}  // namespace skiff
