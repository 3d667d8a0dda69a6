// Counts the FLOP of a plan's matrix products and convolutions from its shapes.
#pragma once

#include "framework/plan/plan.h"

namespace skiff {

// Returns the sum of OpDef::flop over the ops of one run. Ops without that fact count as 0.
double CountFlop(const Plan& plan);

}  // namespace skiff
