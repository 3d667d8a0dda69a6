// Computes repeated expressions once. Of two instructions with the same op, attributes and input
// values, the pass drops the second, whose readers then read the results of the first.
//
//   before                              after
//     #2 lr_a = scale(#1 lr)              #2 lr_a = scale(#1 lr)
//     #3 w    = sgd(w, …, #2)             #3 w    = sgd(w, …, #2)
//     #4 lr_b = scale(#1 lr)              #5 v    = sgd(v, …, #2)
//     #5 v    = sgd(v, …, #4)
//
// A value is one definition of a variable, so a name that is written in between is no hazard, and a
// fetch of lr_b gets #2. Fluid's notes on an op (op_role, op_namescope, …) make no difference, nor
// does a default that is spelled out.
//
// The pass doesn't merge ops that draw random numbers, have a side effect or sub-blocks, or write
// to the scope. Nor does it merge where that would take memory: the first result must be needed up
// to the second instruction anyway, or be no larger than kCheapBytes. So, except for such small
// values, the plan never needs more memory than before. No kernel sees another shape or layout, so
// no bit of a result changes. `changes`: instructions dropped.
#pragma once

#include <cstdint>

#include "framework/transpiler/pass.h"

namespace skiff {

class CommonSubexpressionPass final : public PlanPass {
 public:
  // Results up to this size are merged even if the first result then lives longer.
  static constexpr int64_t kCheapBytes = 4096;

  std::string_view name() const override { return "common_subexpression"; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
