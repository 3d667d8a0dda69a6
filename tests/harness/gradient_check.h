// The gradient of an op: its rule, and the ops that the rule names.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/array_tensor.h"
#include "tests/harness/case_report.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// What the op's gradient rule gives for a case that asks for the gradients of the variables that
// `wants` accepts. Error if the op has no rule.
std::vector<Op> GradientOps(const OpRegistry& registry, const OpCase& op_case, const Op& forward,
                            const std::function<bool(const std::string&)>& wants);

// The variables whose gradients the case checks: the arguments of OpCase::gradients. Error for a
// slot that the case does not fill.
std::vector<std::string> GradientVariables(const OpCase& op_case);

// A run of the forward op, and what its gradient ops may read.
struct ForwardRun {
  NamedTensors outputs;
  std::set<std::string> loss;  // the float outputs that a loss is made of
  // Inputs, outputs, and the gradients of these: pseudo-random ones of `loss`, else zeros.
  NamedTensors values;
};

// Error if no output can be a loss.
ForwardRun RunForward(const OpRegistry& registry, const OpCase& op_case, const Op& forward,
                      const NamedTensors& inputs);

// Checks, in float64, the gradients of sum(weights * outputs) against central differences, each
// gradient alone against all together, and shapes and dtypes; then every gradient op by itself as
// CheckOpEverywhere does: in float64 and, if the case runs in float32, in float32 against float64.
void CheckGradients(const OpRegistry& registry, const OpCase& op_case, const RunnerOptions& options,
                    CaseReport* report);

}  // namespace skiff::harness
