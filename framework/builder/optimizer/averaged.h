// A variable that takes part in an average.
#pragma once

#include "framework/builder/optimizer/parameter_average.h"
#include "framework/ir/program.h"

namespace skiff::optimizer {

struct ParameterAverage::Averaged {
  Var var;
  Var weights;  // the averaged variable: `var`, or the master weights of a two-byte parameter
};

}  // namespace skiff::optimizer
