// ExponentialMovingAverage: a mean of all values of a parameter, in which older values count less.
//
//   average ← d · average + (1 - d) · parameter, from 0 on
//
// The value that is applied is average / (1 - d1 · d2 · …), whose weights add up to one however d
// changes.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/optimizer/parameter_average.h"

namespace skiff::optimizer {

struct ExponentialMovingAverageOptions {
  float decay = 0.999f;
  // int64 [1], a number of steps t: d = min(decay, (1 + t) / (10 + t)). Undefined: d = decay.
  Variable thres_steps = {};
  AveragedVariables averaged = {};
  bool on_host = false;  // keeps the states in host memory: see ParameterAverage
};

// Appends one op exponential_moving_average for all variables of a dtype. A variable has the states
// <variable>_ema_0, of its shape, and <variable>_ema_decay_product_0, of one float64.
class ExponentialMovingAverage final : public ParameterAverage {
 public:
  // Throws as ParameterAverage does, and an Error (kInvalidArgument) if the decay isn't in [0, 1)
  // or thres_steps has another dtype or shape.
  explicit ExponentialMovingAverage(const ExponentialMovingAverageOptions& options = {},
                                    std::source_location site = std::source_location::current());

 private:
  struct States {
    std::string average;
    std::string decay_product;
  };

  void AppendUpdate(DType dtype, const ExponentialMovingAverageOptions& options,
                    const std::source_location& site);
  bool HasValues(const Scope& scope, size_t i) const override;
  Variable AppendAverage(size_t i) const override;

  std::vector<States> states_;  // by variable
};

}  // namespace skiff::optimizer
