// ModelAverage: the mean of a parameter's last values, as many as a window holds, or up to twice as
// many; Fluid's, which approximates the mean of a share of all values.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/optimizer/parameter_average.h"

namespace skiff::optimizer {

struct ModelAverageOptions {
  float average_window_rate = 0.15f;  // the window, as a share of all steps so far
  int64_t min_average_window = 10000;
  int64_t max_average_window = 10000;
  AveragedVariables averaged = {};
  // The number of values in a partial sum. A full partial sum is added to the total, so that no
  // digits are lost. PaddlePaddle only knows this value.
  int64_t max_num_accumulates = 16384;
  bool on_host = false;  // keeps the states in host memory: see ParameterAverage
};

// Appends an op average_accumulates for each variable, in the order of the names; the doc of the op
// has the rule. Each variable has the states <variable>_sum_1_0, _sum_2_0 and _sum_3_0 of the same
// shape, and the int64 states _num_accumulates_0, _old_num_accumulates_0 and _num_updates_0 of one
// element.
class ModelAverage final : public ParameterAverage {
 public:
  // Throws as ParameterAverage does, and an Error (kInvalidArgument) if the rate isn't in [0, 1],
  // 1 <= min_average_window <= max_average_window doesn't hold, or max_num_accumulates < 1.
  explicit ModelAverage(const ModelAverageOptions& options = {},
                        std::source_location site = std::source_location::current());

 private:
  struct States {
    std::vector<std::string> sums;
    std::string num_accumulates;
    std::string old_num_accumulates;
    std::string num_updates;
  };

  void AppendAccumulation(const Averaged& averaged, const ModelAverageOptions& options,
                          const std::source_location& site);
  bool HasValues(const Scope& scope, size_t i) const override;
  Variable AppendAverage(size_t i) const override;

  std::vector<States> states_;
};

}  // namespace skiff::optimizer
