// Steps with a velocity.
#pragma once

#include <source_location>

#include "framework/builder/optimizer.h"

namespace skiff::optimizer {

struct MomentumOptions {
  LearningRate learning_rate = 0.001;
  float momentum = 0.9f;
  bool use_nesterov = false;
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// v ← momentum · v + g, p ← p - rate · v; Nesterov: p ← p - rate · (g + momentum · v). Throws an
// Error (kInvalidArgument) if momentum is negative.
class Momentum final : public Optimizer {
 public:
  explicit Momentum(const MomentumOptions& options = {},
                    std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;

  MomentumOptions options_;
};

}  // namespace skiff::optimizer
