#include "framework/builder/optimizer/adamw.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

AdamW::AdamW(const AdamWOptions& options, std::source_location site)
    : AdamFamily("adamw", options, site), options_(options) {
  CheckNotNegative("weight_decay", options.weight_decay);
  CheckNameParts("exclude_from_decay", options.exclude_from_decay);
}

bool AdamW::Decays(const std::string& parameter) const {
  if (HasAnyPart(parameter, options_.exclude_from_decay)) return false;
  return !options_.decay_filter || options_.decay_filter(parameter);
}

void AdamW::Complete(const Update& update, Op* op) const {
  const std::string& name = update.parameter.name;
  AdamFamily::Complete(update, op);
  op->SetAttr("coeff", options_.weight_decay).SetAttr("with_decay", Decays(name));
  op->SetAttr("lr_ratio", options_.lr_ratio ? options_.lr_ratio(name) : 1.0f);
  op->SetAttr("lazy_mode", options_.lazy_mode);
}

}  // namespace skiff::optimizer
