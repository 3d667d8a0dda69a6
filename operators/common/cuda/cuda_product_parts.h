// What CudaProduct is made of.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/base/dtype.h"
#include "operators/common/cuda/cuda_product_shape.h"
#include "operators/common/half.h"

struct CUstream_st;  // a cudaStream_t points to one

namespace skiff {

struct CudaProductDTypes {
  DType factors = DType::kFloat32;  // A and B
  DType result = DType::kFloat32;   // C and the bias: that of the factors, or float32 for half

  friend bool operator==(const CudaProductDTypes&, const CudaProductDTypes&) = default;
};

// A product by cuBLAS. Nothing in it is empty. The numbers alpha and beta are CudaProduct::Factor,
// in host memory.
class CublasProduct {
 public:
  virtual ~CublasProduct() = default;
  virtual int64_t workspace_bytes() const = 0;
  // Gives the product to the stream; or returns false, and does nothing, if there is no algorithm
  // for matrices at these addresses. Reads no bias if its shape has none.
  virtual bool Run(CUstream_st* stream, const void* a, const void* b, void* c, void* workspace,
                   const void* alpha, const void* beta, const void* bias) const = 0;
};

// Returns nullptr where cuBLAS is missing, and says so once, and where it can't compute the
// product.
std::shared_ptr<const CublasProduct> MakeCublasProduct(const CudaProductShape& shape,
                                                       const CudaProductDTypes& dtypes,
                                                       int64_t max_workspace_bytes);

// Gives a product to the stream, as a kernel of our own. Needs no workspace. C isn't empty. `bias`
// is nullptr if none is added. The types are those of CudaProduct.
template <typename T, typename Result>
void RunPlainProduct(const CudaProductShape& shape, CUstream_st* stream, const T* a, const T* b,
                     Result* c, WideType<T> alpha, WideType<T> beta, const Result* bias);
// Gives to the stream what sets each row of C to the bias.
template <typename Result>
void SetRows(const CudaProductShape& shape, CUstream_st* stream, const Result* bias, Result* c);

}  // namespace skiff
