#include "framework/builder/optimizer/lars_momentum.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

LarsMomentum::LarsMomentum(const LarsMomentumOptions& options, std::source_location site)
    : Optimizer("lars_momentum", options, site), options_(options) {
  CheckNotNegative("momentum", options.momentum);
  CheckNotNegative("coefficient", options.coefficient);
  CheckNotNegative("weight_decay", options.weight_decay);
  CheckNotNegative("epsilon", options.epsilon);
  CheckNameParts("exclude_from_decay", options.exclude_from_decay);
}

void LarsMomentum::Complete(const Update& update, Op* op) const {
  const bool decays = !HasAnyPart(update.parameter.name, options_.exclude_from_decay);
  AddState(update, op, "Velocity", "velocity");
  op->SetAttr("mu", options_.momentum).SetAttr("lars_coeff", options_.coefficient);
  // A list of one entry: the op takes several parameters, each with a decay of its own.
  op->SetAttr("lars_weight_decay", std::vector<float>{decays ? options_.weight_decay : 0.0f});
  op->SetAttr("epsilon", options_.epsilon);
  // An attribute of Skiff's own. Left out for the default, so that PaddlePaddle can run the
  // program.
  if (options_.policy == LarsMomentumOptions::Policy::kNorms) {
    op->SetAttr("lars_policy", std::string("norms"));
  }
}

}  // namespace skiff::optimizer
