// Runs element-wise ops that feed each other as one loop: block by block instead of array by array,
// so that what one hands to the next stays in the cache, and takes no memory if nobody else reads
// it.
//
//   before                        after
//     #3 a = add(#1 x, #2 bias)     #4 b, #6 d = fused(add,gelu,add)(#1 x, #2 bias, #5 c)
//     #4 b = gelu(#3)
//     #6 d = add(#4, #5 c)
//
// The ops have one shape and layout and read, besides tensors of it, single numbers and what is
// repeated along the leading dims (a bias). They stand where the last of them stood: a group takes
// no op whose results somebody reads before, or whose inputs in the scope are written before. The
// kernels are those that would have run on the whole arrays, so no bit of a result changes.
//
// The pass leaves alone arrays of one block, which stay in the cache anyway; ops that draw random
// numbers, may refuse data, have a side effect, write to the scope, or whose kernel is forced or
// wants workspace; and groups that might raise the plan's peak of live memory. `changes`: fused
// instructions made.
#pragma once

#include <cstdint>

#include "framework/transpiler/pass.h"

namespace skiff {

class FuseElementwisePass final : public PlanPass {
 public:
  // Some ten arrays of float32s fit a second-level cache, and each is long enough for the hardware
  // to prefetch the most of it. As much work as pays for a thread.
  static constexpr int64_t kBlockElements = 16384;
  // Float32s of the longest vector: what a block has is a multiple of it.
  static constexpr int64_t kVectorElements = 16;

  FuseElementwisePass() = default;
  // With blocks of at most so many elements: tests take few, but a vector of them.
  explicit FuseElementwisePass(int64_t block_elements) : block_elements_(block_elements) {}

  std::string_view name() const override { return "fuse_elementwise"; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;

 private:
  int64_t block_elements_ = kBlockElements;
};

}  // namespace skiff
