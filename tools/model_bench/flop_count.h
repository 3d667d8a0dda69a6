// Counts the FLOP of a plan's matrix products and convolutions from its shapes.
#pragma once

#include "framework/plan/plan.h"

namespace skiff {

// Returns the FLOP of an instruction by OpDef::flop, 0 for an op without this fact; for a loop the
// FLOP of all iterations, of a single iteration if only a run knows the number. The FLOP are those
// of the definition: a kernel that finds a shorter way (Winograd, lengths of keys) does fewer.
double CountFlop(const Plan& plan, const Instruction& instruction);

// Returns the sum over the instructions of one run.
double CountFlop(const Plan& plan);

}  // namespace skiff
