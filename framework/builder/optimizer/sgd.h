// Steps against the gradient.
#pragma once

#include <source_location>

#include "framework/builder/optimizer.h"

namespace skiff::optimizer {

struct SgdOptions {
  LearningRate learning_rate = 0.001;
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// p ← p - rate · g
class Sgd final : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options = {},
               std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;
};

}  // namespace skiff::optimizer
