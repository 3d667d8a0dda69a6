#include "framework/builder/optimizer/sgd.h"

namespace skiff::optimizer {

Sgd::Sgd(const SgdOptions& options) : Optimizer("sgd", options) {}

void Sgd::Complete(const Update&, Op*) const {}

}  // namespace skiff::optimizer
