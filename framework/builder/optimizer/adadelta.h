// Steps of the size of earlier steps.
#pragma once

#include <source_location>

#include "framework/builder/optimizer.h"

namespace skiff::optimizer {

struct AdadeltaOptions {
  LearningRate learning_rate = 0.001;
  float epsilon = 1e-6f;
  float rho = 0.95f;
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// Zeiler 2012, where the learning rate is 1; the op's doc has the formula. Throws an Error
// (kInvalidArgument) if rho isn't in [0, 1) or epsilon isn't positive.
class Adadelta final : public Optimizer {
 public:
  explicit Adadelta(const AdadeltaOptions& options = {},
                    std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;

  AdadeltaOptions options_;
};

}  // namespace skiff::optimizer
