#include "framework/builder/optimizer/adagrad.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

Adagrad::Adagrad(const AdagradOptions& options, std::source_location site)
    : Optimizer("adagrad", options, site), options_(options) {
  CheckNotNegative("epsilon", options.epsilon);
  CheckNotNegative("initial_accumulator", options.initial_accumulator);
  // Otherwise an element that never had a gradient would change by 0 / 0.
  CheckOption(options.epsilon > 0.0f || options.initial_accumulator > 0.0f, "epsilon",
              options.epsilon, "a positive number, or a positive initial_accumulator");
}

void Adagrad::Complete(const Update& update, Op* op) const {
  AddState(update, op, "Moment", "moment", options_.initial_accumulator);
  op->SetAttr("epsilon", options_.epsilon);
}

}  // namespace skiff::optimizer
