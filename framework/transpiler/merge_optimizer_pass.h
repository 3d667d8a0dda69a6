// Replaces all ops that update their parameters in the same way by one op on lists of tensors, so
// the number of update ops doesn't grow with the number of parameters.
//
//   before                              after
//     w1 = sgd(w1, w1@GRAD, rate)         w1, w2 = sgd(Param: [w1, w2],
//     w2 = sgd(w2, w2@GRAD, rate)                      Grad: [w1@GRAD, w2@GRAD],
//                                                      LearningRate: [rate])
//
// Ops are merged (OpDef::update) if they have the same type, the same attributes, defaults
// included, the same variables in slots that aren't lists (learning rate, scale), and lists
// (parameters, gradients, master weights) of the same dtypes. The merged op takes the place of the
// last one. An op that can't move there, because another op in between reads its parameter, say,
// begins another group. momentum becomes Fluid's merged_momentum, with a decay for each parameter,
// and adam merged_adam. Ops that aren't merged stay, and the report names them and says why: a
// sparse gradient, an op in between, or the difference from the largest group of the type.
// `changes`: ops that went into merged ones.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class MergeOptimizerPass final : public ProgramPass {
 public:
  std::string_view name() const override { return "merge_optimizer"; }
  PassReport Apply(const ProgramPassContext& context, Program* program) const override;
};

}  // namespace skiff
