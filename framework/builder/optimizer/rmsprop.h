// Steps divided by the root of the mean square of the gradient.
#pragma once

#include <source_location>

#include "framework/builder/optimizer.h"

namespace skiff::optimizer {

struct RmsPropOptions {
  LearningRate learning_rate = 0.001;
  float rho = 0.95f;
  float epsilon = 1e-6f;
  float momentum = 0.0f;
  bool centered = false;
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// Tieleman and Hinton 2012: s ← rho · s + (1 - rho) · g², v ← momentum · v + rate · g /
// √(s + epsilon), p ← p - v; centered (Graves 2013) with the variance of g in place of s. Throws
// an Error (kInvalidArgument) if rho isn't in [0, 1), epsilon isn't positive or momentum is
// negative.
class RmsProp final : public Optimizer {
 public:
  explicit RmsProp(const RmsPropOptions& options = {},
                   std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;

  RmsPropOptions options_;
};

}  // namespace skiff::optimizer
