// FLOP of a plan's matrix products and convolutions, counted from its shapes.
#pragma once

#include "framework/plan/plan.h"

namespace skiff {

// The sum of OpDef::flop over the ops of one run.
double CountFlop(const Plan& plan);

}  // namespace skiff
