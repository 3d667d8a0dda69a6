// A batch of bfloat16 products, Bf16Product one after the other.
#pragma once

#include "framework/op/kernel.h"
#include "operators/common/cpu/gemm_plan.h"
#include "operators/common/half.h"

namespace skiff {

class Bf16Gemm {
 public:
  // Requests scratch memory from `context`, or the derived form of a `constant_b` that isn't -1.
  Bf16Gemm(const PlannedGemm& product, PrepareContext& context, int constant_b);

  // Returns whether the product can run: it has no other transpositions than the prepared one, and
  // no size is larger; if B is constant, n and k are the same.
  bool Takes(const PlannedGemm& product) const;
  // Computes the product. Sums are float32, products that are summed included, and each element is
  // rounded once.
  void Run(const KernelContext& context, const PlannedGemm& product, const BFloat16* a,
           const BFloat16* b, BFloat16* c, const BFloat16* bias) const;

 private:
  template <typename C>
  void RunOne(const KernelContext& context, const GemmSpec& spec, const BFloat16* a,
              const BFloat16* b, C* c, int64_t c_stride, float beta, const BFloat16* bias) const;

  GemmSpec spec_;        // that it was prepared for
  int all_packed_ = -1;  // the derived form of B, or -1:
  int packed_ = -1;      // the workspace for some columns of B,
  int64_t packed_bytes_ = 0;
  int scratch_ = -1;  // for a transposed A,
  int sums_ = -1;     // and for the sums of several products
};

}  // namespace skiff
