#include "framework/builder/optimizer/decayed_adagrad.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

DecayedAdagrad::DecayedAdagrad(const DecayedAdagradOptions& options, std::source_location site)
    : Optimizer("decayed_adagrad", options, site), options_(options) {
  CheckFraction("decay", options.decay);
  CheckPositive("epsilon", options.epsilon);
}

void DecayedAdagrad::Complete(const Update& update, Op* op) const {
  AddState(update, op, "Moment", "moment");
  op->SetAttr("decay", options_.decay).SetAttr("epsilon", options_.epsilon);
}

}  // namespace skiff::optimizer
