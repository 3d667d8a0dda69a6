// A batch of bfloat16 products in the loops of Bf16Product.
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
  // The memory of a product.
  struct Room {
    const void* all_packed;  // B, or nullptr:
    void* packed;            // for some columns of B
    void* left;              // for a transposed A
    float* sums;             // for the sums of several products
  };

  Room RoomOf(const KernelContext& context, int64_t slot) const;
  // Computes the products that are summed into one C.
  void RunOne(const Room& room, const PlannedGemm& product, const BFloat16* a, const BFloat16* b,
              BFloat16* c, const BFloat16* bias) const;
  template <typename C>
  void RunTerm(const Room& room, const GemmSpec& spec, const BFloat16* a, const BFloat16* b, C* c,
               int64_t c_stride, float beta, const BFloat16* bias) const;

  GemmSpec spec_;  // of the preparation
  // Parts of the batch that may run at the same time.
  int64_t slots_ = 1;
  int all_packed_ = -1;  // a derived form
  // Workspaces, and the bytes of a slot.
  int packed_ = -1;
  int64_t packed_bytes_ = 0;
  int left_ = -1;
  int64_t left_bytes_ = 0;
  int sums_ = -1;
  int64_t sums_bytes_ = 0;
};

}  // namespace skiff
