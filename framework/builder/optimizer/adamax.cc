#include "framework/builder/optimizer/adamax.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

Adamax::Adamax(const AdamaxOptions& options, std::source_location site)
    : Optimizer("adamax", options, site), options_(options) {
  CheckFraction("beta1", options.beta1);
  CheckFraction("beta2", options.beta2);
  CheckPositive("epsilon", options.epsilon);
}

void Adamax::Complete(const Update& update, Op* op) const {
  AddState(update, op, "Moment", "moment");
  AddState(update, op, "InfNorm", "inf_norm");
  AddNumber(update, op, "Beta1Pow", "beta1_pow_acc", options_.beta1);
  op->SetAttr("beta1", options_.beta1).SetAttr("beta2", options_.beta2);
  op->SetAttr("epsilon", options_.epsilon);
}

// Fluid's update op leaves the power of beta1 to the program.
std::optional<Op> Adamax::Finish(const Op& update) const {
  Op scale("scale");
  scale.SetInput("X", update.Input("Beta1Pow")).SetOutput("Out", update.Input("Beta1Pow"));
  scale.SetAttr("scale", options_.beta1);
  return scale;
}

}  // namespace skiff::optimizer
