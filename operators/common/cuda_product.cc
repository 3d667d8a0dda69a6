#include "operators/common/cuda_product.h"

#include "framework/base/error.h"
#include "operators/common/cuda_product_parts.h"

namespace skiff {
namespace {

// Fills in the distances between rows.
CudaProductShape Checked(CudaProductShape shape) {
  SKIFF_ENFORCE(shape.m >= 0 && shape.n >= 0 && shape.k >= 0 && shape.batches >= 0,
                kInvalidArgument, "product of matrices: m = ", shape.m, ", n = ", shape.n,
                ", k = ", shape.k, ", batches = ", shape.batches, ", expected none below 0");
  const auto set = [](int64_t columns, const char* name, int64_t* distance) {
    if (*distance == 0) *distance = columns;
    SKIFF_ENFORCE(*distance >= columns, kInvalidArgument, "product of matrices: ", name, " = ",
                  *distance, ", expected at least the ", columns, " columns");
  };
  set(shape.transpose_a ? shape.m : shape.k, "lda", &shape.lda);
  set(shape.transpose_b ? shape.k : shape.n, "ldb", &shape.ldb);
  set(shape.n, "ldc", &shape.ldc);
  return shape;
}

bool IsEmpty(const CudaProductShape& shape) {
  return shape.m == 0 || shape.n == 0 || shape.batches == 0;
}

}  // namespace

template <typename T>
CudaProduct<T>::CudaProduct(CudaProductShape shape, int64_t max_workspace_bytes)
    : shape_(Checked(shape)) {
  // A sum of nothing is left to the plain kernel: cuBLAS knows no matrices without rows.
  if (!IsEmpty(shape_) && shape_.k > 0) {
    cublas_ = MakeCublasProduct(shape_, kDTypeOf<T>, max_workspace_bytes);
  }
}

template <typename T>
int64_t CudaProduct<T>::workspace_bytes() const {
  return cublas_ == nullptr ? 0 : cublas_->workspace_bytes();
}

template <typename T>
void CudaProduct<T>::Run(CUstream_st* stream, const T* a, const T* b, T* c, void* workspace,
                         T alpha, T beta) const {
  if (IsEmpty(shape_)) return;
  if (cublas_ != nullptr && cublas_->Run(stream, a, b, c, workspace, &alpha, &beta)) return;
  RunPlainProduct(shape_, stream, a, b, c, alpha, beta);
}

template class CudaProduct<float>;
template class CudaProduct<double>;

}  // namespace skiff
