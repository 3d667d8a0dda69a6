// Programs that only update parameters: what Minimize appends to a training program, with given
// gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "tools/optimizer_bench/memory_stream.h"

namespace skiff {

// What to update, and how.
struct UpdateWork {
  std::string optimizer;  // one of OptimizerNames
  int64_t tensors = 1;
  int64_t elements = 1;           // per tensor
  bool clip_global_norm = false;  // by ops of the program
  bool l2_decay = false;          // by ops of the program
  bool averages = false;          // exponentially, by an op of the program
};

// Returns the names of the optimizers' ops.
std::vector<std::string> OptimizerNames();

// Returns the passes over memory that the formulas need if no array fits into the caches. A
// quantity that depends on all elements before any is updated, such as a norm, takes a pass of its
// own. Single numbers per tensor aren't counted. Throws Error for an unknown optimizer.
std::vector<Sweep> SweepsOf(const UpdateWork& work);

struct UpdateProgram {
  Program main;  // only the ops with the role Optimize
  Program startup;
  std::vector<std::string> gradients;  // persistable variables of main, which nothing writes
};

// Returns a program with default options, a clip norm that every step exceeds, and a decay of 0.01.
// Throws Error for an unknown optimizer.
std::unique_ptr<UpdateProgram> MakeUpdateProgram(const UpdateWork& work);

// Fills the executor's scope with the parameters, states and gradients. The gradients are such that
// nothing becomes infinite or denormal, however often the program runs.
void Initialize(const UpdateProgram& program, Executor* executor);

}  // namespace skiff
