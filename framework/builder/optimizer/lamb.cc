#include "framework/builder/optimizer/lamb.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

Lamb::Lamb(const LambOptions& options, std::source_location site)
    : AdamFamily("lamb", options, site), options_(options) {
  CheckNotNegative("weight_decay", options.weight_decay);
  CheckNameParts("exclude_from_decay", options.exclude_from_decay);
}

void Lamb::Complete(const Update& update, Op* op) const {
  const bool decays = !HasAnyPart(update.parameter.name, options_.exclude_from_decay);
  AdamFamily::Complete(update, op);
  // A parameter with a decay of 0 also doesn't adapt, unless always_adapt is set.
  op->SetAttr("weight_decay", decays ? options_.weight_decay : 0.0f);
  op->SetAttr("always_adapt", options_.always_adapt);
}

}  // namespace skiff::optimizer
