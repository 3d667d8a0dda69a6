// Has the tensors of each update op on lists lie one behind the other: parameters and optimizer
// states in one buffer a list, in the scope, and gradients in one part of the arena.
//
//   before                                       after
//     w1, w2 = sgd(Param: [w1, w2],                w1, w2 = sgd(…) {is_flat = true}
//                  Grad: [g1, g2], …)
//
// Nothing is renamed and nothing copied: each tensor stays a variable of its own, for everybody
// else a view of the buffer like any other. Backward ops write gradients where the update reads
// them; the part of a gradient that isn't written yet serves other values. Who loads or saves
// variables sees no difference. Ops on sums, of gradients (gradient_merge) or of parameters
// (averages), are treated alike, but parameters lie as their updates have them. merge_optimizer
// makes the lists; why a parameter is alone, its report says. `changes`: parameters that lie flat.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FlattenParametersPass final : public ProgramPass {
 public:
  std::string_view name() const override { return "flatten_parameters"; }
  std::string_view needs() const override { return "merge_optimizer"; }
  PassReport Apply(const OpRegistry& registry, Program* program) const override;
};

}  // namespace skiff
