// A batch of products as a primitive of oneDNN.
#pragma once

#include <optional>

#include "framework/op/kernel.h"
#include "operators/common/cpu/gemm_plan.h"
#include "operators/common/libraries/onednn.h"

namespace skiff {

// Of float32 or bfloat16. Runs over the dims with separate results; one that is summed isn't
// looked at.
class MatmulPrimitive {
 public:
  // In float32, with `beta` instead of the product's. Requests scratch memory from `context`, and a
  // derived form of B if `prepacked_b`, the index of the op's input that is B, isn't -1. Throws
  // what OnednnMatmul throws.
  MatmulPrimitive(const PlannedGemm& product, double beta, PrepareContext& context,
                  int prepacked_b);
  // In bfloat16: a, b, c and the bias. Returns nothing if oneDNN has no fast primitive.
  static std::optional<MatmulPrimitive> OfBf16(const PlannedGemm& product, PrepareContext& context);

  // The bias is set unless it is nullptr.
  void Run(const KernelContext& context, const void* a, const void* b, void* c, const void* bias);

 private:
  struct Description;
  MatmulPrimitive(const Description& description, PrepareContext& context, int prepacked_b);

  OnednnCall call_;
  int workspace_ = -1;
  int packed_b_ = -1;
};

}  // namespace skiff
