#include "framework/builder/optimizer/adam.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

Adam::Adam(const AdamOptions& options, std::source_location site)
    : AdamFamily("adam", options, site), options_(options) {}

void Adam::Complete(const Update& update, Op* op) const {
  AdamFamily::Complete(update, op);
  op->SetAttr("lazy_mode", options_.lazy_mode);
}

}  // namespace skiff::optimizer
