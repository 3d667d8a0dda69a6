// Times a case of an operator, or of the operator's gradient, on one kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/op_case.h"

namespace skiff {

struct TimingOptions {
  Place place = Place::Cpu();
  DType dtype = DType::kFloat32;
  std::string candidate;       // empty: the kernel that the registry selects
  double least_seconds = 0.2;  // measured time per case
  int64_t least_runs = 5;
};

struct OpTiming {
  std::string type;
  std::string name;  // of the case
  std::string candidate;
  int64_t runs = 0;
  double median_seconds = 0;
  int64_t bytes = 0;  // of all inputs and outputs
  int64_t workspace_bytes = 0;
  std::optional<double> flop;  // of one run, by OpDef::flop
};

// Returns the median time of a run, without the preparation of workspaces and derived forms. Throws
// the Errors of the op's checks and kernels.
OpTiming TimeCase(const OpRegistry& registry, const harness::OpCase& op_case,
                  const TimingOptions& options);

// Returns the times of the ops that compute the gradients checked by the case. If the case checks
// none, times the gradients of all float inputs. Their inputs are the outputs of a run of the case,
// and pseudo-random gradients of these. The candidate is one of a gradient op. Throws what TimeCase
// throws, and Error for an op without a gradient.
std::vector<OpTiming> TimeGradients(const OpRegistry& registry, const harness::OpCase& op_case,
                                    const TimingOptions& options);

}  // namespace skiff
