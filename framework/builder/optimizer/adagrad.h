// Rates that fall with the sum of the squared gradients.
#pragma once

#include <source_location>

#include "framework/builder/optimizer.h"

namespace skiff::optimizer {

struct AdagradOptions {
  LearningRate learning_rate = 0.001;
  float epsilon = 1e-6f;
  float initial_accumulator = 0.0f;  // m at first
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// Duchi, Hazan and Singer 2011: m ← m + g², p ← p - rate · g / (√m + epsilon). Throws an Error
// (kInvalidArgument) if epsilon or initial_accumulator is negative, or if both are 0: then an
// element that never had a gradient would be 0 / 0.
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const AdagradOptions& options = {},
                   std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;

  AdagradOptions options_;
};

}  // namespace skiff::optimizer
