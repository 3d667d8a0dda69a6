// Moves each optimizer update directly after the op that makes the update possible. So a gradient
// dies as soon as it exists, and the space serves the gradients of earlier layers.
//
//   before                              after
//     w2@GRAD = mul_grad(…, w2)           w2@GRAD = mul_grad(…, w2)
//     w1@GRAD = mul_grad(…, w1)           w2      = sgd(w2, w2@GRAD)
//     w1      = sgd(w1, w1@GRAD)          w1@GRAD = mul_grad(…, w1)
//     w2      = sgd(w2, w2@GRAD)          w1      = sgd(w1, w1@GRAD)
//
// An op never crosses another op if one writes a variable that the other reads or writes; an op
// that runs a sub-block does what the sub-block does. Ops with side effects stay, and nothing
// crosses them. Throws an Error for a program that isn't well formed, as UsesOf does. `changes`:
// ops moved.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class EarlyUpdatePass final : public ProgramPass {
 public:
  std::string_view name() const override { return "early_update"; }
  PassReport Apply(const ProgramPassContext& context, Program* program) const override;
};

}  // namespace skiff
