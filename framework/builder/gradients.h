// Gradients as variables of the program.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/variable.h"
#include "framework/precision/precision_options.h"

namespace skiff {

struct GradientsOptions {
  std::vector<std::string> no_grad = {};  // variables through which no gradient flows
  // As MinimizeOptions::precision. With a loss scale, the gradients are float32 and divided by it,
  // and the scale changes in each run by whether they were finite.
  PrecisionOptions precision = {};
};

// Returns the gradients of `loss`, a variable of the default main program with one element, with
// respect to each of `xs`: variables of the same shapes, computed in the same run. The xs are
// parameters, feeds or whatever ops compute, in the root block; marks such as stop_gradient don't
// count for them. The gradient of a looked-up table is selected rows if the lookup is_sparse.
// Clones for evaluation have neither the gradients nor ops that use gradients. Without updates in
// the program, runs are no steps of a training: dropout draws the same numbers in each.
//
//   const std::vector<Variable> gradients = Gradients(loss, {w, hidden});
//
// Gradient ops have no gradients themselves, so a loss can't depend on these gradients. For the
// product of a vector and a Jacobian, take the loss ReduceSum(y * vector).
//
// Throws an Error (kInvalidArgument) if there are no xs, if an x is undefined, of another program,
// no float or written by several ops, or if the loss doesn't depend on an x; and the Errors of
// AppendBackward. The programs are then as they were before, as with Minimize.
std::vector<Variable> Gradients(const Variable& loss, const std::vector<Variable>& xs,
                                const GradientsOptions& options = {},
                                std::source_location site = std::source_location::current());

}  // namespace skiff
