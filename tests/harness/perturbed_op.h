// What ops do with attributes and arguments that nobody meant for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

struct PerturbedOp {
  std::string what;  // "axis = -1", "X.0 of shape [3, 0]"
  Op op;
  NamedTensors inputs;
};

// The op with one thing changed: an attribute at a bound of its type or beyond (a long
// for an int), small, next to its value (of
// integers), with an element more or less, or of another type; an input of another dim, rank or
// dtype (its numbers repeated or cut off); an argument missing or given twice.
std::vector<PerturbedOp> PerturbationsOf(const OpDef& def, const Op& op,
                                         const NamedTensors& inputs);

struct PerturbationReport {
  // What went wrong with a perturbation that was not refused with an Error.
  std::vector<std::string> problems;
  int64_t refused = 0;
  int64_t computed = 0;  // ran, or would make outputs too large to run here
};

// Not a benchmark, and of few elements: a larger case of an op shows nothing more.
bool IsPerturbed(const OpCase& op_case);

// Perturbs the op of a case, and its gradient ops, in every dtype of the case, plain layouts only.
// Whatever is not refused runs on every kernel that accepts it: all say the same, whatever lies
// about in memory, and write nowhere else; so do the gradient ops of what the forward op computes.
// An empty report unless the case IsPerturbed. Error if the case as it is can't run.
PerturbationReport CheckPerturbations(const OpRegistry& registry, const OpCase& op_case);

}  // namespace skiff::harness
