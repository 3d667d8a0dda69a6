// A variable that takes part in an average.
#pragma once

#include "framework/ir/program.h"

namespace skiff::internal {

struct AveragedVariable {
  Var var;
  Var weights;  // the averaged variable: `var`, or the master weights of a two-byte parameter
};

}  // namespace skiff::internal
