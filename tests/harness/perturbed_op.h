// Tests ops with wrong attributes and arguments.
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

// Returns variants of the op with one thing changed: an attribute at a bound of its type or beyond
// (a long for an int), small, next to its value (of integers), with one element more or less, or of
// another type; an input of another dim, rank or dtype (its numbers repeated or cut off), or empty
// with a huge dim; an argument missing or given twice. The last variants replace one extent by 0
// and another by a huge extent in all inputs, so that shapes still fit each other.
std::vector<PerturbedOp> PerturbationsOf(const OpDef& def, const Op& op,
                                         const NamedTensors& inputs);

struct PerturbationReport {
  // Problems of perturbations that weren't rejected with an Error.
  std::vector<std::string> problems;
  int64_t refused = 0;
  int64_t computed = 0;  // ran, or would make outputs too large to run here
};

// Returns whether to perturb a case: it isn't a benchmark and has few elements. A larger case of an
// op shows nothing more.
bool IsPerturbed(const OpCase& op_case);

// Perturbs the op of a case and its gradient ops, in every dtype of the case, in plain layouts
// only. Runs each perturbed op that isn't rejected on every kernel that accepts it. All kernels
// must agree, must not depend on leftovers in memory, and must write nowhere else. The same holds
// for the gradient ops of a perturbed forward op. Returns an empty report unless the case
// IsPerturbed. Throws Error if the unchanged case can't run.
PerturbationReport CheckPerturbations(const OpRegistry& registry, const OpCase& op_case);

}  // namespace skiff::harness
