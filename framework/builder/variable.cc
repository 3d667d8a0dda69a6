#include "framework/builder/variable.h"

#include "framework/base/error.h"
#include "framework/ir/program.h"

namespace skiff {

const std::vector<int64_t>& Variable::dims() const { return var().dims; }

DType Variable::dtype() const { return var().dtype; }

Var& Variable::var() const {
  SKIFF_ENFORCE(defined(), kInvalidArgument, "an undefined Variable was used");
  return *block_->GetVar(name_);
}

const Variable& Variable::StopGradient(bool stop) const {
  var().stop_gradient = stop;
  return *this;
}

}  // namespace skiff
