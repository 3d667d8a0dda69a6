// What CudaProduct is made of.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/base/dtype.h"
#include "operators/common/cuda/cuda_product.h"

struct CUstream_st;  // a cudaStream_t points to one

namespace skiff {

// A product by cuBLAS. Nothing in it is empty. The factors alpha and beta are of its dtype, in host
// memory.
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
std::shared_ptr<const CublasProduct> MakeCublasProduct(const CudaProductShape& shape, DType dtype,
                                                       int64_t max_workspace_bytes);

// Gives a product to the stream, as a kernel of our own. Needs no workspace. C isn't empty. `bias`
// is nullptr if none is added.
template <typename T>
void RunPlainProduct(const CudaProductShape& shape, CUstream_st* stream, const T* a, const T* b,
                     T* c, T alpha, T beta, const T* bias);
// Gives the addition of the bias alone to the stream.
template <typename T>
void AddBiasToRows(const CudaProductShape& shape, CUstream_st* stream, const T* bias, T* c);

extern template void RunPlainProduct<float>(const CudaProductShape&, CUstream_st*, const float*,
                                            const float*, float*, float, float, const float*);
extern template void RunPlainProduct<double>(const CudaProductShape&, CUstream_st*, const double*,
                                             const double*, double*, double, double, const double*);
extern template void AddBiasToRows<float>(const CudaProductShape&, CUstream_st*, const float*,
                                          float*);
extern template void AddBiasToRows<double>(const CudaProductShape&, CUstream_st*, const double*,
                                           double*);

}  // namespace skiff
