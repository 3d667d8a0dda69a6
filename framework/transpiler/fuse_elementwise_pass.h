// Runs element-wise ops that feed each other as one loop: block by block instead of array by array.
// So intermediate results stay in the cache, and take no memory if no other instruction reads them.
//
//   before                        after
//     #3 a = add(#1 x, #2 bias)     #4 b, #6 d = fused(add,gelu,add)(#1 x, #2 bias, #5 c)
//     #4 b = gelu(#3)
//     #6 d = add(#4, #5 c)
//
// The ops have one shape and layout. Besides tensors of this shape, the ops read single numbers and
// tensors that are repeated along the leading dims (a bias). The group runs where its last op ran.
// So the group has no op whose results another instruction reads earlier, or whose inputs in the
// scope are written earlier. The same kernels run as on the whole arrays, so no bit of a result
// changes.
//
// The pass leaves alone arrays of one block, which stay in the cache anyway; ops that draw random
// numbers, may refuse data, have a side effect, write to the scope, or whose kernel is forced or
// needs a workspace; and groups that might raise the plan's peak of live memory. `changes`: fused
// instructions made.
#pragma once

#include <cstdint>

#include "framework/transpiler/pass.h"

namespace skiff {

class FuseElementwisePass final : public PlanPass {
 public:
  // Blocks of some ten float32 arrays fit a second-level cache. Each block is long enough for the
  // hardware to prefetch most of it, and for a thread to pay.
  static constexpr int64_t kBlockElements = 16384;
  // The number of float32s in the longest vector. A block has a multiple of it.
  static constexpr int64_t kVectorElements = 16;

  FuseElementwisePass() = default;
  // Uses blocks of at most this many elements. Tests take few, but at least a vector.
  explicit FuseElementwisePass(int64_t block_elements) : block_elements_(block_elements) {}

  std::string_view name() const override { return "fuse_elementwise"; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;

 private:
  int64_t block_elements_ = kBlockElements;
};

}  // namespace skiff
