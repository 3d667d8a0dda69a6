// Steps by moments of the gradient.
#pragma once

#include <source_location>

#include "framework/builder/optimizer/adam_family.h"

namespace skiff::optimizer {

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  bool lazy_mode = false;  // a sparse gradient updates its own rows only
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// Kingma and Ba 2015; the op's doc has the formula. Throws as AdamFamily does.
class Adam final : public AdamFamily {
 public:
  explicit Adam(const AdamOptions& options = {},
                std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;

  AdamOptions options_;
};

}  // namespace skiff::optimizer
