// General matrix multiplication on a device: what Gemm (gemm.h) is on the CPU.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "framework/op/kernel.h"
#include "operators/common/cpu/gemm_spec.h"
#include "operators/common/half.h"

namespace skiff {

// The device gets the largest dim of the batch as a whole, so that the products run side by side;
// the CPU issues the products over the other dims one after the other. Where all products of a
// batch are summed into one small matrix, or the elements of a small matrix are long sums (a weight
// gradient), parts are written side by side into a workspace, and a kernel adds them in order.
// Their number, and so the bits, depends on the sizes and, for a product smaller than the prepared
// product, on the scratch memory of the prepared product.
//
// T is float, double, BFloat16 or Float16. All sums of half are float32, those over a batch
// included, and each element is rounded once. May be copied. One thread at a time.
template <typename T>
class CudaGemm {
 public:
  // Requests scratch memory from `context`. Throws Error for an invalid spec, and (kUnimplemented)
  // for sums of half over a batch into a C with gaps.
  CudaGemm(const GemmSpec& spec, PrepareContext& context);

  // Computes the product that it was made for, or one of which no size is larger. c must overlap
  // neither a nor b. The bias is read if the spec adds one.
  void Run(const KernelContext& run, const GemmSpec& spec, const T* a, const T* b, T* c,
           const T* bias = nullptr);

 private:
  class Plan;

  const Plan& PlanOf(const GemmSpec& spec);

  MathMode math_;  // PrepareContext::math
  // Scratch memory: bytes, and -1 or the index of a workspace.
  int64_t product_bytes_ = 0;
  int64_t part_bytes_ = 0;
  int product_workspace_ = -1;
  int part_workspace_ = -1;
  std::list<std::pair<GemmSpec, std::shared_ptr<const Plan>>> plans_;  // used last first
};

extern template class CudaGemm<float>;
extern template class CudaGemm<double>;
extern template class CudaGemm<BFloat16>;
extern template class CudaGemm<Float16>;

}  // namespace skiff
