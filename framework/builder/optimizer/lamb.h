// Layer-wise adaptive Adam (LAMB) for large batches.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/optimizer/adam_family.h"

namespace skiff::optimizer {

struct LambOptions {
  LearningRate learning_rate = 0.001;
  float weight_decay = 0.01f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-6f;
  // Parts of names: parameters that don't decay, biases and normalisation for example.
  std::vector<std::string> exclude_from_decay = {};
  bool always_adapt = false;  // also parameters that don't decay
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// You et al. 2020: p ← p - rate · |p| / |s| · s with the step s of Adam plus weight_decay · p; the
// quotient is 1 for a parameter that does not adapt. Throws as AdamFamily does, and an Error
// (kInvalidArgument) if weight_decay is negative or a part of names is empty.
class Lamb final : public AdamFamily {
 public:
  explicit Lamb(const LambOptions& options = {},
                std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;

  LambOptions options_;
};

}  // namespace skiff::optimizer
