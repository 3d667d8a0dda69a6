#include "framework/builder/optimizer/ftrl.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

Ftrl::Ftrl(const FtrlOptions& options, std::source_location site)
    : Optimizer("ftrl", options, site), options_(options) {
  CheckNotNegative("l1", options.l1);
  CheckNotNegative("l2", options.l2);
  CheckOption(options.lr_power <= 0.0f, "lr_power", options.lr_power, "a number of at most 0");
}

void Ftrl::Complete(const Update& update, Op* op) const {
  // In Fluid these outputs aren't named like the inputs.
  AddState(update, op, "SquaredAccumulator", "squared", 0.0, "SquaredAccumOut");
  AddState(update, op, "LinearAccumulator", "linear", 0.0, "LinearAccumOut");
  op->SetAttr("l1", options_.l1).SetAttr("l2", options_.l2);
  op->SetAttr("lr_power", options_.lr_power);
}

}  // namespace skiff::optimizer
