// Checks the gradient of an op: its rule, and the ops that the rule names.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/array_tensor.h"
#include "tests/harness/case_report.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Returns the result of the op's gradient rule if exactly the gradients of the variables that
// `wants` accepts are wanted. Throws Error if the op has no rule.
std::vector<Op> GradientOps(const OpRegistry& registry, const OpCase& op_case, const Op& forward,
                            const std::function<bool(const std::string&)>& wants);

// Returns the variables whose gradients the case checks: the arguments of OpCase::gradients. Throws
// Error for a slot that the case doesn't fill.
std::vector<std::string> GradientVariables(const OpCase& op_case);

// The results of a run of the forward op, and the inputs that its gradient ops may read.
struct ForwardRun {
  NamedTensors outputs;
  std::set<std::string> loss;  // the float outputs that the loss sums
  // Inputs, outputs, and gradients of the outputs: pseudo-random for `loss`, else zeros.
  NamedTensors values;
};

// Runs the forward op. Throws Error if no output can be part of a loss.
ForwardRun RunForward(const OpRegistry& registry, const OpCase& op_case, const Op& forward,
                      const NamedTensors& inputs);

// Checks in float64 the gradients of sum(weights * outputs) against central differences, each
// gradient alone against all together, and shapes and dtypes. Then checks every gradient op by
// itself with CheckOpEverywhere, in float64 and, if the case runs in float32, in float32 and
// half (CheckedHalves) against float64.
void CheckGradients(const OpRegistry& registry, const OpCase& op_case, const RunnerOptions& options,
                    CaseReport* report);

}  // namespace skiff::harness
