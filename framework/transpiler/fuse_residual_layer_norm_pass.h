// Makes one instruction of a bias, dropout, a residual and the layer norm of their sum; likewise of
// their gradients.
//
//   before                                     after
//     b = elementwise_add(x, bias)               y, s, mask = bias_dropout_residual_layer_norm(
//     d, mask = dropout(b)                           x, bias, r, …)
//     s = elementwise_add(d, r)                  …
//     y = layer_norm(s, …)                       dx, dbias, dr, … =
//     …                                              bias_dropout_residual_layer_norm_grad(
//     ds, … = layer_norm_grad(s, dy, …)                  s, mask, dy, …)
//     dd, dr = elementwise_add_grad(ds)
//     db = dropout_grad(mask, dd)
//     dx, dbias = elementwise_add_grad(db)
//
// Where s goes on past the layer norm, as in a transformer that normalizes first, a sum of ds and
// of the other gradient of s may stand behind layer_norm_grad; the fused op takes the other one as
// Sum@GRAD. With or without the bias and the dropout; the sum may name its operands in either
// order. The same elements are dropped. Others may read s and mask, which stay; s goes if nobody
// but the layer norm reads it. Where nothing is dropped, dx and dr are equal: readers of dr then
// read dx.
//
// It fuses nothing unless rows are the last dim, and leaves a bias of another shape and a dropout
// with a Seed tensor apart. It makes no rewrite if anyone else reads b or d (ds, dd or db), or if
// an instruction in between writes a variable that the fused one reads. The gradients are fused
// whether or not the forward ops are. `changes`: instructions made.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FuseResidualLayerNormPass final : public PlanPass {
 public:
  std::string_view name() const override { return "fuse_residual_layer_norm"; }
  // The gradient of the bias is summed in another order.
  double tolerance() const override { return 1e-5; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
