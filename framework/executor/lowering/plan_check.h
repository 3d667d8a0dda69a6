// Checks that a program can run by making its plan.
#pragma once

#include <optional>
#include <string>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

// Why no plan can be made of a program.
struct NoPlan {
  std::string why;  // as a run would say it
  // Whether no run has a plan. If false, FindNoPlan has tried a few sizes for what the program
  // leaves open; another size may have a plan.
  bool is_certain = false;
};

// Makes a plan of a program in which VerifyProgram finds nothing, and so asks what loops, branches,
// their gradients and arrays demand, and for the shapes that all ops get. Returns nothing if there
// is a plan.
//
// The feeds are the variables that `feed` ops name, and those that the root block reads before an
// op writes them, but for gradients that only gradient ops of blocks read. The scope holds the
// persistables that the root block reads before an op writes them. All are as the program declares
// them. Unknown extents are one of a few sizes, each in turn. A ragged feed has a sequence for each
// row; in a large program, where that would take much memory, one of all its rows.
//
// The result is certain if the program leaves nothing open, or if all sizes are refused in the same
// words. FindNoPlan takes for granted that the message of a rule which refuses a size has the size,
// or a number that follows from the size. If a rule without numbers in its message refuses only the
// sizes that are tried, the result is wrong.
//
// What follows an op whose output shapes depend on data isn't looked at.
//
// Throws an Error (kResourceExhausted) if there is no memory.
std::optional<NoPlan> FindNoPlan(const OpRegistry& registry, const Program& program);

}  // namespace skiff
