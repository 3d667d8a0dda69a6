// Folds the ops between a gradient and its update into the update op, which then reads the gradient
// once: clipping by the global norm, weight decay and rescaling. Also folds the op that advances
// the power of beta1 after adamax, of which there is one per parameter.
//
//   before                                   after
//     n1 = squared_l2_norm(g1), n2 = …(g2)     n = squared_global_norm(g1, g2)
//     n = sum(n1, n2)
//     factor = …(n)                            factor = …(n)
//     c1 = elementwise_mul(g1, factor)
//     d1 = scale(w1) {scale = 0.01}
//     r1 = sum(c1, d1)
//     w1 = sgd(w1, r1, rate)                   w1 = sgd(w1, g1, rate, GradScale: factor)
//                                                   {regularization_coeff = 0.01, …}
//
// The ops compute the same bits: they round where the ops before did. A two-byte gradient that was
// cast to float32 on the way is read as it is, by update and norm. Ops whose results only the
// update read stay in the program, since a fetch may name the results; dead_code drops the ops from
// a plan without such a fetch. Gradients that are sparse, or clipped in another way, are left
// alone. merge_optimizer then makes one op of the updates. `changes`: ops folded.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FuseOptimizerPass final : public ProgramPass {
 public:
  std::string_view name() const override { return "fuse_optimizer"; }
  std::string_view needs() const override { return "merge_optimizer"; }
  PassReport Apply(const ProgramPassContext& context, Program* program) const override;
};

}  // namespace skiff
