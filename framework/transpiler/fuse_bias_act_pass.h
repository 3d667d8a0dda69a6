// Makes one instruction of a bias by channel and the relu or gelu after it; likewise of their
// gradients.
//
//   before                                     after
//     s = elementwise_add(x, b)                  r = bias_act(x, b)
//     r = relu(s)                                …
//     …                                          dx, db = bias_act_grad(r, dr)
//     ds = relu_grad(r, dr)
//     dx, db = elementwise_add_grad(ds)
//
// b is a vector along dim 1 of x, or along its last. Unlike an addition of other shapes, bias_act
// takes blocked layouts, so that no copy follows a convolution.
//
// gelu becomes bias_gelu if b is along the last dim of two or three. Its gradient adds x and b
// again:
//
//     s = elementwise_add(x, b)                  g = bias_gelu(x, b)
//     g = gelu(s)                                …
//     …                                          dx, db = bias_gelu_grad(x, b, dg)
//     ds = gelu_grad(s, dg)
//     dx, db = elementwise_add_grad(ds)
//
// It fuses nothing if x has another rank than 2 to 5, if any other instruction reads s, if an
// instruction in between writes a variable that the fused instruction reads, or if a kernel is
// forced on a fused op. The gradients stay apart if anyone else reads ds or, with relu, nobody
// wants db; with gelu everything stays apart then. `changes`: instructions made.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FuseBiasActPass final : public PlanPass {
 public:
  std::string_view name() const override { return "fuse_bias_act"; }
  // db is summed in another order, and a convolution may find another layout.
  double tolerance() const override { return 1e-5; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
