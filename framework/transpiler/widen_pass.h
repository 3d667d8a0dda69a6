// Runs ops on float16 or bfloat16 (half) by their float32 kernels, where there are none for half,
// or the user forces "widened" (kWidened): widens the inputs of these ops, and rounds the outputs.
//
//   y = tanh(x)            x' = cast(x)        # float32
//                    →     y' = tanh(x')
//                          y = cast(y')        # half
//
// So every op with float32 kernels takes half, with the bits of the float32 op rounded once. The
// copies live only while the op runs, unless common_subexpression finds that keeping one for
// another reader is free. An op of which only the shape of an input is read gets the input as it
// is.
//
// The sum of a gradient over the iterations of a loop becomes float32, rounded after the loop; the
// terms of the sum aren't rounded then, if they were float32 before a cast, or if their op has the
// bits of its float32 kernel: this op is widened, too.
//
// Leaves out ops without a float32 kernel, ops that take arrays, and ops whose kernels decide about
// the rows of their outputs: those have kernels for half or none at all.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class WidenPass final : public PlanPass {
 public:
  std::string_view name() const override { return "widen"; }
  // Not every op has a kernel for half.
  bool IsRequiredBy(const Plan& plan) const override;
  // `changes`: ops that are widened, and sums over iterations.
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
