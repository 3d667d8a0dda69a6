// Checks that a program can run by making its plan.
#pragma once

#include <string>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

// Returns why no plan can be made of a program, as a run would say it: what loops, branches, their
// gradients and arrays demand, and the shapes that all ops get. "": there is a plan.
//
// The feeds are the variables that `feed` ops name or that the root block reads before it writes
// them, and the scope holds the persistables that the block reads so, all as the program declares
// them. For unknown extents, and for the numbers of sequences of ragged feeds, a few sizes are
// tried in turn; the message is that of the first one if none of them has a plan. What follows an
// op whose output shapes depend on data isn't looked at.
//
// The program is one in which VerifyProgram finds nothing. Throws nothing of its own.
std::string WhyNoPlan(const OpRegistry& registry, const Program& program);

}  // namespace skiff
