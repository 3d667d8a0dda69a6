// Replaces all ops that update their parameters alike by one op on lists of tensors, so that the
// number of update ops doesn't grow with that of the parameters.
//
//   before                              after
//     w1 = sgd(w1, w1@GRAD, rate)         w1, w2 = sgd(Param: [w1, w2],
//     w2 = sgd(w2, w2@GRAD, rate)                      Grad: [w1@GRAD, w2@GRAD],
//                                                      LearningRate: [rate])
//
// Alike are ops (OpDef::update) of one type, with the same attributes, defaults included, and the
// same variables in slots that aren't lists (learning rate, scale), whose lists
// (parameters, gradients, master weights) have the same dtypes. The merged op stands where the last
// of them did; an op that can't move there, because another one in between reads its parameter,
// say, begins another group. momentum becomes Fluid's merged_momentum, with a decay for each
// parameter, and adam merged_adam. What isn't merged stays, and the report names it and says why: a
// sparse gradient, an op in between, or what the largest group of its type has otherwise.
// `changes`: ops that went into merged ones.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class MergeOptimizerPass final : public ProgramPass {
 public:
  std::string_view name() const override { return "merge_optimizer"; }
  PassReport Apply(const OpRegistry& registry, Program* program) const override;
};

}  // namespace skiff
