// A product of matrices whose sums are cut: products over runs of terms, side by side, and a
// product over the terms that are left, if any. Each writes a part, and a kernel adds them in
// order.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "operators/common/cuda/cuda_long_sum.h"
#include "operators/common/cuda/cuda_parts.cuh"
#include "operators/common/cuda/cuda_product.h"

namespace skiff {

// T is that of CudaProduct. The parts of half are float32. May be copied.
template <typename T>
class CudaLongSum {
 public:
  using Wide = WideType<T>;

  // The rows of C must be contiguous, the shape without a batch, and the cut made for its k. Throws
  // Error for sizes that don't fit. Whether a bias is added is up to Run.
  CudaLongSum(CudaProductShape shape, const LongSumCut& cut,
              int64_t max_product_workspace = kMaxCudaProductWorkspace)
      : elements_(shape.m * shape.n),
        columns_(shape.n),
        parts_(cut.parts()),
        first_parts_(cut.count),
        products_(PartsOf(shape, cut), max_product_workspace) {
    if (cut.rest == 0) return;
    const CudaProductShape of_parts = PartsOf(shape, cut);
    rest_a_ = cut.count * of_parts.stride_a;
    rest_b_ = cut.count * of_parts.stride_b;
    shape.k = cut.rest;
    shape.adds_bias = false;
    rest_.emplace(shape, max_product_workspace);
  }

  // Of the scratch memory that Run needs: of a product, and of the parts.
  int64_t product_bytes() const {
    const int64_t bytes = products_.workspace_bytes();
    return rest_ ? std::max(bytes, rest_->workspace_bytes()) : bytes;
  }
  int64_t part_bytes() const { return parts_ * elements_ * static_cast<int64_t>(sizeof(Wide)); }

  // C = alpha · op(A) · op(B) + beta · C, and a bias that isn't nullptr.
  void Run(cudaStream_t stream, const T* a, const T* b, T* c, void* of_product, Wide* of_parts,
           Wide alpha = 1, Wide beta = 0, const T* bias = nullptr) const {
    products_.Run(stream, a, b, of_parts, of_product, alpha);
    if (rest_) {
      rest_->Run(stream, a + rest_a_, b + rest_b_, of_parts + first_parts_ * elements_, of_product,
                 alpha);
    }
    AddPartsOnDevice(stream, "long sum of a product of matrices", of_parts, parts_, elements_, beta,
                     c, RowBias<T>{bias, columns_});
  }

 private:
  static CudaProductShape PartsOf(CudaProductShape shape, const LongSumCut& cut) {
    shape.k = cut.terms;
    shape.batches = cut.count;
    shape.stride_a = cut.terms * (shape.transpose_a ? shape.lda : 1);
    shape.stride_b = cut.terms * (shape.transpose_b ? 1 : shape.ldb);
    shape.stride_c = shape.m * shape.n;
    shape.adds_bias = false;
    return shape;
  }

  int64_t elements_;     // of a part
  int64_t columns_;      // of C
  int64_t parts_;        // with that of the rest
  int64_t first_parts_;  // without it
  CudaProduct<T, Wide> products_;
  std::optional<CudaProduct<T, Wide>> rest_;
  int64_t rest_a_ = 0;  // where its terms begin
  int64_t rest_b_ = 0;
};

}  // namespace skiff
