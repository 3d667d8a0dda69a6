// Runs instructions in another order, in which less is live at the most: last readers of large
// values earlier, what makes large values later.
//
//   before                                    after
//     #1 a = gelu(#0 x)                         #1 a = gelu(#0 x)
//     #2 b = fill_constant()                    #3 c = reduce_sum(#1)
//     #3 c = reduce_sum(#1 a)                   #2 b = fill_constant()
//     #4 d = elementwise_add(#2, #3)            #4 d = elementwise_add(#2, #3)
//
// All dependencies are kept (analysis/dependencies.h), also those through the scope, so the results
// are the same bits: what an op draws depends on the op, not on when it runs. A step that throws
// leaves what it would have left.
//
// Where it isn't at the peak the order stays as it is, and as a whole if less than kLeastGain of
// the peak would be gained (task_order.h). Workspaces of kernels aren't known yet, but of fused
// instructions, so what lives beside a large one may grow by what was gained elsewhere. Runs behind
// the passes that decide what is computed: what fuse_elementwise doesn't keep must not count, and
// no group should be torn apart. Runs before memory_reuse, whose decisions it foresees. `changes`:
// instructions moved.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class OrderPass final : public PlanPass {
 public:
  std::string_view name() const override { return "order"; }
  PassReport Apply(const OpRegistry& registry, Plan* plan) const override;
};

}  // namespace skiff
