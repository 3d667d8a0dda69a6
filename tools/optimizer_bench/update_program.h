// Programs that do nothing but update parameters: what Minimize appends to a training program, with
// gradients that are there already.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "tools/optimizer_bench/memory_stream.h"

namespace skiff {

// What is updated, and how.
struct UpdateWork {
  std::string optimizer;  // one of OptimizerNames
  int64_t tensors = 1;
  int64_t elements = 1;           // of each
  bool clip_global_norm = false;  // by ops of the program
  bool l2_decay = false;          // by ops of the program
  bool averages = false;          // exponentially, by an op of the program
};

// Named as their ops are.
std::vector<std::string> OptimizerNames();

// What the formulas must read and write, each array as often as it has to go through memory if a
// processor holds none of them: what must be known of all elements before any is updated (norms)
// takes a pass of its own. Numbers that a tensor has one of aren't counted. Error for an unknown
// optimizer.
std::vector<Sweep> SweepsOf(const UpdateWork& work);

struct UpdateProgram {
  Program main;  // the ops with the role Optimize alone
  Program startup;
  std::vector<std::string> gradients;  // persistable variables of main, which nothing writes
};

// With the options' defaults, a largest norm that every step exceeds and a decay of 0.01. Error for
// an unknown optimizer.
std::unique_ptr<UpdateProgram> MakeUpdateProgram(const UpdateWork& work);

// Fills the executor's scope with what the program needs. The gradients are such that nothing
// becomes infinite or denormal, however often the program runs.
void Initialize(const UpdateProgram& program, Executor* executor);

}  // namespace skiff
