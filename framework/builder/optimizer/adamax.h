// Adam with the largest gradient in place of the second moment.
#pragma once

#include <optional>
#include <source_location>

#include "framework/builder/optimizer.h"

namespace skiff::optimizer {

struct AdamaxOptions {
  LearningRate learning_rate = 0.001;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// Kingma and Ba 2015, section 7.1; the op's doc has the formula. Throws an Error (kInvalidArgument)
// if a beta isn't in [0, 1) or epsilon isn't positive.
class Adamax final : public Optimizer {
 public:
  explicit Adamax(const AdamaxOptions& options = {},
                  std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;
  std::optional<ir::Op> Finish(const ir::Op& update) const override;

  AdamaxOptions options_;
};

}  // namespace skiff::optimizer
