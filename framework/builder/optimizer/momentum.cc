#include "framework/builder/optimizer/momentum.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

Momentum::Momentum(const MomentumOptions& options, std::source_location site)
    : Optimizer("momentum", options, site), options_(options) {
  CheckNotNegative("momentum", options.momentum);
}

void Momentum::Complete(const Update& update, Op* op) const {
  AddState(update, op, "Velocity", "velocity");
  op->SetAttr("mu", options_.momentum).SetAttr("use_nesterov", options_.use_nesterov);
}

}  // namespace skiff::optimizer
