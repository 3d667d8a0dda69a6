// Makes one instruction of multi-head attention, and one of the gradient of the attention:
//
//   before (attention_pattern.h)             after
//     q = transpose2(reshape2(query))          out = multihead_attention(query, key, value, mask)
//     k, v likewise                            …
//     s = matmul_v2(scale(q), k)               dquery, dkey, dvalue =
//     w = softmax(s + mask)                        multihead_attention_grad(query, …, out, dout)
//     o = matmul_v2(dropout(w), v)
//     out = reshape2(transpose2(o))
//     …
//     and the gradients of these
//
// No matrix of scores, of weights or of dropped ones is in memory any more, and nothing is copied
// to bring heads to the front. Dropout drops the same weights as before. If query, key and value
// are thirds of the columns of one value, cut by a split whose gradient is a concat, the
// instructions read that value and write its gradient.
//
// It fuses nothing if any other instruction reads a vanishing value (a fetch of the weights, a
// gradient other than the attention's), if the mask wants a gradient, if dropout scales in
// evaluation or has a Seed tensor, or if a kernel is forced on a fused op. `changes`: instructions
// made.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FuseAttentionPass final : public PlanPass {
 public:
  std::string_view name() const override { return "fuse_attention"; }
  // Rows are summed tile by tile, and the weights' gradients are shifted by sum(out · dout) instead
  // of by sum(w · dw). That has moved results by up to 6e-7 of their size. Only the gradient of a
  // bias of the keys has no size of its own: it is 0 except for rounding, which was up to 4e-7 of
  // the gradient of the keys' weights, and counts relative to the largest gradient (see Pass).
  double tolerance() const override { return 1e-5; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
