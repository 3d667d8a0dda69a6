// Matrix products on a device, on row-major matrices: by cuBLAS, which is loaded when the first
// product is made, or by a kernel of our own where that library is missing.
//
// The same product has the same bits in each run: no algorithm adds up in an order that varies.
// cuBLAS chooses an algorithm by the sizes, by the workspace that it may have, and by the alignment
// of the matrices; so the bits depend on these, too. Half (bfloat16 and float16) is added up in
// float32, and each element rounded once. Factors of float32 are rounded to TF32, for tensor cores,
// only if the shape says so.
#pragma once

#include <cstdint>
#include <memory>

#include "operators/common/cuda/cuda_product_shape.h"
#include "operators/common/half.h"

struct CUstream_st;  // a cudaStream_t points to one

namespace skiff {

class CublasProduct;

// NVIDIA's recommendation for its largest devices.
inline constexpr int64_t kMaxCudaProductWorkspace = int64_t{32} << 20;  // bytes

// C = alpha · op(A) · op(B) + beta · C, and a bias if the shape says so, with its algorithm chosen.
// T, the type of A and B, is float, double, BFloat16 or Float16; Result, that of C and the bias, is
// T or, for half, float. May be copied; one thread at a time may run any of the copies.
template <typename T, typename Result = T>
class CudaProduct {
 public:
  using Factor = WideType<T>;  // of alpha and beta

  // Chooses for the current device. Throws Error for sizes that don't fit.
  explicit CudaProduct(CudaProductShape shape,
                       int64_t max_workspace_bytes = kMaxCudaProductWorkspace);

  // Of the workspace that Run needs, aligned as workspaces of kernels are; often 0.
  int64_t workspace_bytes() const;
  // Whether cuBLAS computes it, at most addresses.
  bool is_by_cublas() const { return cublas_ != nullptr; }

  // Gives the product to the stream. C must overlap neither A nor B. With beta = 0, C is
  // overwritten, whatever it contains. With a bias, beta must be 0. Does nothing if C is empty. The
  // bias is read if there is one to add.
  void Run(CUstream_st* stream, const T* a, const T* b, Result* c, void* workspace,
           Factor alpha = 1, Factor beta = 0, const Result* bias = nullptr) const;

 private:
  CudaProductShape shape_;
  std::shared_ptr<const CublasProduct> cublas_;  // nullptr: the plain kernel runs
  // cuBLAS has no algorithm that adds the bias, but adds the product to rows that are the bias.
  bool begins_with_bias_ = false;
};

extern template class CudaProduct<float>;
extern template class CudaProduct<double>;
extern template class CudaProduct<BFloat16>;
extern template class CudaProduct<Float16>;
extern template class CudaProduct<BFloat16, float>;
extern template class CudaProduct<Float16, float>;

}  // namespace skiff
