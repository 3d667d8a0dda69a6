// Moves instructions so that less is live at the peak: last readers of large values run earlier,
// makers of large values later.
//
//   before                                    after
//     #1 a = gelu(#0 x)                         #1 a = gelu(#0 x)
//     #2 b = fill_constant()                    #3 c = reduce_sum(#1)
//     #3 c = reduce_sum(#1 a)                   #2 b = fill_constant()
//     #4 d = elementwise_add(#2, #3)            #4 d = elementwise_add(#2, #3)
//
// Keeps all dependencies (analysis/dependencies.h), including those through the scope, so results
// don't change by a bit: the numbers of a random op depend on the op, not on its place in the
// order. A step that throws leaves the scope as it would without the pass.
//
// Away from the peak the order stays as it is. It stays as a whole if less than kLeastGain of the
// peak would be gained (task_order.h). Workspaces aren't known yet, except those of fused
// instructions, so more may live at the same time as a large workspace than before.
// pass_order.cc says which passes must run before and after. `changes`: instructions moved.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class OrderPass final : public PlanPass {
 public:
  std::string_view name() const override { return "order"; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
