// CUDA kernels of bmm and bmm_grad; bmm.cc has the formulas.
#include "operators/math/kernels/cuda_matrix_product.cuh"

namespace skiff {

void RegisterBmmCuda(OpRegistry& registry) {
  AddCudaMatrixProductKernels(registry, "bmm", BmmProduct);
}

}  // namespace skiff
