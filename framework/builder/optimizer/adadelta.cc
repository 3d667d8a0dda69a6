#include "framework/builder/optimizer/adadelta.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

Adadelta::Adadelta(const AdadeltaOptions& options, std::source_location site)
    : Optimizer("adadelta", options, site), options_(options) {
  CheckFraction("rho", options.rho);
  CheckPositive("epsilon", options.epsilon);
}

void Adadelta::Complete(const Update& update, Op* op) const {
  // Fluid's names have two underscores here: <parameter>__avg_squared_grad_0.
  AddState(update, op, "AvgSquaredGrad", "_avg_squared_grad");
  AddState(update, op, "AvgSquaredUpdate", "_avg_squared_update");
  op->SetAttr("rho", options_.rho).SetAttr("epsilon", options_.epsilon);
}

}  // namespace skiff::optimizer
