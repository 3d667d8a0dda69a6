#include "framework/builder/optimizer/adam_family.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

void AdamFamily::Complete(const Update& update, Op* op) const {
  AddState(update, op, "Moment1", "moment1");
  AddState(update, op, "Moment2", "moment2");
  // The op advances the powers of both betas itself, unlike adamax.
  op->SetOutput("Beta1PowOut", {AddNumber(update, op, "Beta1Pow", "beta1_pow_acc", beta1_)});
  op->SetOutput("Beta2PowOut", {AddNumber(update, op, "Beta2Pow", "beta2_pow_acc", beta2_)});
  op->SetAttr("beta1", beta1_).SetAttr("beta2", beta2_).SetAttr("epsilon", epsilon_);
}

}  // namespace skiff::optimizer
