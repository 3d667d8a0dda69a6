#include "framework/builder/optimizer/sgd.h"

#include "framework/ir/program.h"

namespace skiff::optimizer {

Sgd::Sgd(const SgdOptions& options, std::source_location site) : Optimizer("sgd", options, site) {}

void Sgd::Complete(const Update&, Op*) const {}

}  // namespace skiff::optimizer
