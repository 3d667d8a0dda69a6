// Rates that fall with the mean of the squared gradients.
#pragma once

#include <source_location>

#include "framework/builder/optimizer.h"

namespace skiff::optimizer {

struct DecayedAdagradOptions {
  LearningRate learning_rate = 0.001;
  float decay = 0.95f;
  float epsilon = 1e-6f;
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// m ← decay · m + (1 - decay) · g², p ← p - rate · g / (√m + epsilon). Throws an Error
// (kInvalidArgument) if decay isn't in [0, 1) or epsilon isn't positive.
class DecayedAdagrad final : public Optimizer {
 public:
  explicit DecayedAdagrad(const DecayedAdagradOptions& options = {},
                          std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;

  DecayedAdagradOptions options_;
};

}  // namespace skiff::optimizer
