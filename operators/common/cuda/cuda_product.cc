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

template <typename T, typename Result>
CudaProduct<T, Result>::CudaProduct(CudaProductShape shape, int64_t max_workspace_bytes)
    : shape_(Checked(shape)) {
  // A sum of nothing is left to the plain kernel: cuBLAS knows no matrices without rows.
  if (IsEmpty(shape_) || shape_.k == 0) return;
  constexpr CudaProductDTypes kDTypes{.factors = kDTypeOf<T>, .result = kDTypeOf<Result>};
  cublas_ = MakeCublasProduct(shape_, kDTypes, max_workspace_bytes);
  if (cublas_ != nullptr || !shape_.adds_bias) return;
  CudaProductShape without_bias = shape_;
  without_bias.adds_bias = false;
  cublas_ = MakeCublasProduct(without_bias, kDTypes, max_workspace_bytes);
  begins_with_bias_ = cublas_ != nullptr;
}

template <typename T, typename Result>
int64_t CudaProduct<T, Result>::workspace_bytes() const {
  return cublas_ == nullptr ? 0 : cublas_->workspace_bytes();
}

template <typename T, typename Result>
void CudaProduct<T, Result>::Run(CUstream_st* stream, const T* a, const T* b, Result* c,
                                 void* workspace, Factor alpha, Factor beta,
                                 const Result* bias) const {
  if (IsEmpty(shape_)) return;
  SKIFF_ENFORCE(shape_.adds_bias == (bias != nullptr), kFailedPrecondition,
                "product of matrices: made ", shape_.adds_bias ? "with" : "without",
                " a bias, runs ", bias != nullptr ? "with" : "without", " one");
  SKIFF_ENFORCE(bias == nullptr || beta == 0, kFailedPrecondition,
                "product of matrices: a bias and beta = ", beta, ", expected 0");
  if (cublas_ != nullptr) {
    const Factor of_c = begins_with_bias_ ? 1 : beta;
    if (begins_with_bias_) SetRows(shape_, stream, bias, c);
    if (cublas_->Run(stream, a, b, c, workspace, &alpha, &of_c, bias)) return;
  }
  RunPlainProduct(shape_, stream, a, b, c, alpha, beta, bias);
}

template class CudaProduct<float>;
template class CudaProduct<double>;
template class CudaProduct<BFloat16>;
template class CudaProduct<Float16>;
template class CudaProduct<BFloat16, float>;
template class CudaProduct<Float16, float>;

}  // namespace skiff
