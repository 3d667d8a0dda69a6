// Makes one op of a softmax and the cross-entropy of the result, and one op of the gradients of
// both:
//
//   before                                     after
//     p = softmax(x)                             p, y = softmax_with_cross_entropy(x, label)
//     y = cross_entropy(p, label)                …
//     …                                          dx = softmax_with_cross_entropy_grad(p, label, dy)
//     dp = cross_entropy_grad(p, label, dy)
//     dx = softmax_grad(p, dp)
//
// It saves the passes over p and dp, and takes the logarithm of no probability: where one
// rounds to 0, the loss is the true one instead of 1e20, and the gradient is no 0 / 0.
//
// Others may read p; if none does, the fused op doesn't write it. The pass fuses nothing if the
// softmax isn't along the last axis, if the label lacks that axis or is computed after the softmax,
// or if a kernel is forced on one of the ops. The gradients stay apart if dp is a sum or somebody
// else reads it.
//
// It also has losses by class skip the items that ignore_index names (skip_ignored) if nobody but
// the loss's gradient, which is 0 there, reads p.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FuseSoftmaxLossPass final : public PlanPass {
 public:
  std::string_view name() const override { return "fuse_softmax_loss"; }
  // log(exp(x) / sum) is x - log(sum), except for the rounding of the probability.
  double tolerance() const override { return 1e-5; }
  // `changes`: fused instructions made, and instructions that skip items.
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
