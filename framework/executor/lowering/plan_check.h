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
  // Whether no run has a plan. If false, FindNoPlan has tried a few sizes for the extents that the
  // program leaves open; another size may have a plan.
  bool is_certain = false;
};

// Makes a plan of a program in which VerifyProgram finds nothing. This checks the demands of loops,
// branches, gradients of both and arrays, and the shapes of all ops. Returns nothing if there is a
// plan.
//
// The feeds are the variables named by `feed` ops, and the variables that the root block reads
// before a write, except gradients that only gradient ops of blocks read. The scope holds the
// persistables that the root block reads before a write. All are as the program declares them.
// Unknown extents are one of a few sizes, each in turn. A ragged feed has a sequence for each row,
// or a single sequence of all rows in a large program, to save memory.
//
// The result is certain if the program leaves nothing open, or if all sizes are refused in the same
// words. FindNoPlan takes for granted that the message of a rule which refuses a size has the size,
// or a number that follows from the size. If a rule without numbers in its message refuses only the
// tried sizes, the result is wrong.
//
// FindNoPlan doesn't check the ops that need a shape which depends on data, nor the ops after them.
//
// Throws an Error (kResourceExhausted) if there is no memory.
std::optional<NoPlan> FindNoPlan(const OpRegistry& registry, const Program& program);

}  // namespace skiff
