// Makes one instruction of a batch norm, an addition to its result, and the relu after that;
// likewise of their gradients.
//
//   before                                     after
//     y = batch_norm(x, …)                       r = batch_norm_act(x, z, …)
//     s = elementwise_add(y, z)                  …
//     r = relu(s)                                dx, dz = batch_norm_act_grad(x, r, dr, …)
//     …
//     ds = relu_grad(r, dr)
//     dy, dz = elementwise_add_grad(ds)
//     dx, … = batch_norm_grad(x, dy, …)
//
// The addition is optional and may name its operands in either order. Three passes over memory
// become one, and neither y nor s is kept. Without the addition, the gradient reads x where
// relu_grad reads r, so that r may die early (replay_activation).
//
// It fuses nothing if anything else reads y, s, ds or dy, if the addition repeats an operand, or if
// an instruction in between writes a variable that the fused one reads. The fused kernels round as
// the single ones do: no bit of a result changes. `changes`: instructions made.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FuseBatchNormActPass final : public PlanPass {
 public:
  std::string_view name() const override { return "fuse_batch_norm_act"; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
