// Lets ops in the body of a loop run on the rows of many iterations at once (Batching): a product
// with the rows of many is much faster than many with the rows of one.
//
//   before: an op whose rows are known when the loop begins, with weights that stay the same
//     while { word = words[i]; gates = word · W + state · U; … }
//     word · W is computed for the words of many iterations at once.
//
//   after: an op whose results are sums over rows that the body doesn't read, such as the gradients
//   of weights. If it gives rows as well, it is split in two.
//     while { dX, dW = mul_grad(X, W, dOut); … }
//     Each iteration computes its dX, and keeps X and dOut. dW is computed from the X and dOut of
//     many iterations at once.
//
// The ops are those with a RowRule. An op runs unbatched if batching doesn't pay: if the op's rows
// in an iteration have more bytes than its weights. Sums add up in another order, and products of
// more rows may, too. The memory of the rows is a workspace of the loop, for each op at most twice
// that of its weights.
//
// `changes`: instructions that run batched.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class BatchOverTimePass final : public PlanPass {
 public:
  std::string_view name() const override { return "batch_over_time"; }
  double tolerance() const override { return 1e-5; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
