// In inference, a batch norm behind a convolution becomes part of it:
//
//   c = conv2d(x, w)                                   y = conv2d_batch_norm_act(x, w, scale, …)
//   y = batch_norm(c, scale, bias, mean, variance)  →
//
// likewise batch_norm_act, with what it adds and its relu. The kernels of the new op scale the
// filters once for as long as the parameters don't change.
//
// It is not made where the batch's own statistics count, where somebody else reads the
// convolution's output or what the batch norm hands on for its gradient, where filters or
// statistics lie outside the scope or the plan writes them (as an optimizer does), where channels
// come first in one and last in the other, and where a kernel is forced on one of the ops.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FoldBatchNormPass final : public PlanPass {
 public:
  std::string_view name() const override { return "fold_batch_norm"; }
  // Filters are rounded after they were scaled, and the mean is subtracted from the scaled sum.
  double tolerance() const override { return 2e-5; }
  // `changes`: batch norms folded.
  PassReport Apply(const OpRegistry& registry, Plan* plan) const override;
};

}  // namespace skiff
