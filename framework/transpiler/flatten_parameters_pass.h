// Stores the tensors of each list of an update op contiguously: parameters and optimizer states in
// one buffer per list, in the scope, and gradients in one part of the arena.
//
//   before                                       after
//     w1, w2 = sgd(Param: [w1, w2],                w1, w2 = sgd(…) {is_flat = true}
//                  Grad: [g1, g2], …)
//
// Nothing is renamed and nothing copied: each tensor stays a variable of its own, a view of the
// buffer. Backward ops write gradients where the update reads them; the space of gradients that
// aren't written yet serves other values. Loading and saving variables makes no difference. Ops on
// sums, of gradients (gradient_merge) or of parameters (averages), are treated in the same way, but
// updates decide where parameters are. merge_optimizer makes the lists; its report says why a
// parameter is alone. `changes`: parameters that are stored flat.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FlattenParametersPass final : public ProgramPass {
 public:
  std::string_view name() const override { return "flatten_parameters"; }
  std::string_view needs() const override { return "merge_optimizer"; }
  PassReport Apply(const ProgramPassContext& context, Program* program) const override;
};

}  // namespace skiff
