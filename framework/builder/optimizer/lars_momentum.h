// Layer-wise adaptive rates (LARS) for large batches.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/optimizer.h"

namespace skiff::optimizer {

struct LarsMomentumOptions {
  LearningRate learning_rate = 0.001;
  float momentum = 0.9f;
  float coefficient = 0.001f;  // how far a parameter moves, relative to its norm
  float weight_decay = 0.0005f;
  // Parts of names: parameters that don't decay, biases and normalisation for example.
  std::vector<std::string> exclude_from_decay = {};
  // Which parameters adapt. kDecayAndNorms: parameters that decay, unless the parameter or the
  // gradient is 0; all others are updated as by Momentum. kNorms: also parameters that don't decay.
  enum class Policy { kDecayAndNorms, kNorms } policy = Policy::kDecayAndNorms;
  float epsilon = 0.0f;
  GradientClip clip = {};
  Regularizer regularization = {};
  bool multi_precision = false;  // float32 master weights for two-byte parameters
};
// You, Gitman and Ginsburg 2017: v ← momentum · v + local · (g + decay · p), p ← p - v with
// local = rate · coefficient · |p| / (|g| + decay · |p| + epsilon), or `rate` for a parameter that
// does not adapt. Throws an Error (kInvalidArgument) if a number is negative or a part of names is
// empty.
class LarsMomentum final : public Optimizer {
 public:
  explicit LarsMomentum(const LarsMomentumOptions& options = {},
                        std::source_location site = std::source_location::current());

 private:
  void Complete(const Update& update, ir::Op* op) const override;

  LarsMomentumOptions options_;
};

}  // namespace skiff::optimizer
