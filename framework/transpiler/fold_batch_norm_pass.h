// In inference, makes a batch norm part of the convolution before it:
//
//   c = conv2d(x, w)                                   y = conv2d_batch_norm_act(x, w, scale, …)
//   y = batch_norm(c, scale, bias, mean, variance)  →
//
// It folds batch_norm_act likewise, with the addition and the relu. The kernels of the new op scale
// the filters once for as long as the parameters don't change.
//
// It doesn't fold a batch norm that uses the statistics of the batch; whose convolution has another
// reader, or whose results for the gradient have a reader; whose filters or statistics are outside
// the scope, or written by the plan (as by an optimizer); if channels come first in one op and last
// in the other; and if a kernel is forced on one of the ops.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FoldBatchNormPass final : public PlanPass {
 public:
  std::string_view name() const override { return "fold_batch_norm"; }
  // Filters are rounded after they were scaled, and the mean is subtracted from the scaled sum.
  double tolerance() const override { return 1e-5; }
  // `changes`: batch norms folded.
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
