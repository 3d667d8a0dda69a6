#include "operators/common/cuda/cuda_product.h"

#include "framework/base/error.h"
#include "operators/common/cuda/cuda_product_parts.h"

namespace skiff {
namespace {

// Fills in the distances between rows.
CudaProductShape Checked(CudaProductShape shape) {
  SKIFF_ENFORCE(shape.m >= 0 && shape.n >= 0 && shape.k >= 0 && shape.batches >= 0,
                kInvalidArgument, "product of matrices: m = ", shape.m, ", n = ", shape.n,
                ", k = ", shape.k, ", batches = ", shape.batches, ", expected none below 0");
  SKIFF_ENFORCE(!shape.adds_bias || shape.batches == 1, kInvalidArgument,
                "product of matrices: a bias for a batch of ", shape.batches, ", expected one");
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
  if (IsEmpty(shape_) || shape_.k == 0) return;
  cublas_ = MakeCublasProduct(shape_, kDTypeOf<T>, max_workspace_bytes);
  if (cublas_ != nullptr || !shape_.adds_bias) return;
  CudaProductShape without_bias = shape_;
  without_bias.adds_bias = false;
  cublas_ = MakeCublasProduct(without_bias, kDTypeOf<T>, max_workspace_bytes);
  adds_bias_after_ = cublas_ != nullptr;
}

template <typename T>
int64_t CudaProduct<T>::workspace_bytes() const {
  return cublas_ == nullptr ? 0 : cublas_->workspace_bytes();
}

template <typename T>
void CudaProduct<T>::Run(CUstream_st* stream, const T* a, const T* b, T* c, void* workspace,
                         T alpha, T beta, const T* bias) const {
  if (IsEmpty(shape_)) return;
  SKIFF_ENFORCE(shape_.adds_bias == (bias != nullptr), kFailedPrecondition,
                "product of matrices: made ", shape_.adds_bias ? "with" : "without",
                " a bias, runs ", bias != nullptr ? "with" : "without", " one");
  if (cublas_ == nullptr || !cublas_->Run(stream, a, b, c, workspace, &alpha, &beta, bias)) {
    RunPlainProduct(shape_, stream, a, b, c, alpha, beta, bias);
  } else if (adds_bias_after_) {
    AddBiasToRows(shape_, stream, bias, c);
  }
}

template class CudaProduct<float>;
template class CudaProduct<double>;

}  // namespace skiff
