#include "framework/builder/optimizer/rmsprop.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

RmsProp::RmsProp(const RmsPropOptions& options, std::source_location site)
    : Optimizer("rmsprop", options, site), options_(options) {
  CheckFraction("rho", options.rho);
  CheckPositive("epsilon", options.epsilon);
  CheckNotNegative("momentum", options.momentum);
}

void RmsProp::Complete(const Update& update, Op* op) const {
  AddState(update, op, "MeanSquare", "mean_square");
  AddState(update, op, "Moment", "momentum");
  // PaddlePaddle refuses the op without it, centered or not.
  AddState(update, op, "MeanGrad", "mean_grad");
  op->SetAttr("decay", options_.rho).SetAttr("momentum", options_.momentum);
  op->SetAttr("epsilon", options_.epsilon).SetAttr("centered", options_.centered);
}

}  // namespace skiff::optimizer
