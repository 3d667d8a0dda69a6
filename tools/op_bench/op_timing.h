// Times one case of an operator, or of its gradient, on one kernel.
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
  std::string candidate;       // empty: the kernel that the registry chooses
  double least_seconds = 0.2;  // measured time a case
  int64_t least_runs = 5;
};

struct OpTiming {
  std::string type;
  std::string name;  // of the case
  std::string candidate;
  int64_t runs = 0;
  double median_seconds = 0;
  int64_t bytes = 0;           // of all inputs and outputs
  std::optional<double> flop;  // of one run, by OpDef::flop
};

// The median time of a run; workspaces and derived forms are made before. Error as the op's checks
// and kernels throw them.
OpTiming TimeCase(const OpRegistry& registry, const harness::OpCase& op_case,
                  const TimingOptions& options);

// Of the ops that compute the gradients of all inputs of floats, from the outputs of a run of the
// case and pseudo-random gradients of these. The candidate is one of a gradient op. Error as
// TimeCase, and for an op without a gradient.
std::vector<OpTiming> TimeGradients(const OpRegistry& registry, const harness::OpCase& op_case,
                                    const TimingOptions& options);

}  // namespace skiff
