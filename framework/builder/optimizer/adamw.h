// Adam with decoupled weight decay.
#pragma once

#include <functional>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/optimizer/adam_family.h"

namespace skiff::optimizer {

struct AdamWOptions {
  LearningRate learning_rate = 0.001;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0.01f;
  // Parts of names: parameters that don't decay, biases and normalisation for example.
  std::vector<std::string> exclude_from_decay = {};
  // Returns whether a parameter that isn't excluded decays. Empty: all do.
  std::function<bool(const std::string& parameter)> decay_filter = {};
  // Multiplies the learning rate of a parameter; empty: 1.
  std::function<float(const std::string& parameter)> lr_ratio = {};
  bool lazy_mode = false;  // a sparse gradient updates its own rows only
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// Loshchilov and Hutter 2019: p ← p - rate · weight_decay · p, then the step of Adam. Throws as
// AdamFamily does, and an Error (kInvalidArgument) if weight_decay is negative or a part of names
// is empty.
class AdamW final : public AdamFamily {
 public:
  explicit AdamW(const AdamWOptions& options = {},
                 std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;
  bool Decays(const std::string& parameter) const;

  AdamWOptions options_;
};

}  // namespace skiff::optimizer
