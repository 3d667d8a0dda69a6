// Follow the regularized leader: sparse parameters.
#pragma once

#include <source_location>

#include "framework/builder/optimizer.h"

namespace skiff::optimizer {

struct FtrlOptions {
  LearningRate learning_rate = 0.001;
  float l1 = 0.0f;
  float l2 = 0.0f;
  float lr_power = -0.5f;
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// McMahan et al. 2013; the op's doc has the formula. Throws an Error (kInvalidArgument) if l1 or l2
// is negative, or lr_power positive.
class Ftrl final : public Optimizer {
 public:
  explicit Ftrl(const FtrlOptions& options = {},
                std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;

  FtrlOptions options_;
};

}  // namespace skiff::optimizer
