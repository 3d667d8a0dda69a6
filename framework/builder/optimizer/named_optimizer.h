// An optimizer chosen by name, for command lines and configurations.
#pragma once

#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/gradient_clip.h"
#include "framework/builder/learning_rate.h"
#include "framework/builder/optimizer.h"

namespace skiff::optimizer {

struct NamedOptimizer {
  std::string name = "momentum";  // one of OptimizerNames()
  LearningRate learning_rate = 0.001;
  // The own weight decay of adamw, lamb and lars_momentum; of all other optimizers L2
  // regularization.
  float weight_decay = 0.0f;
  // Parts of names: parameters that don't decay. Only for optimizers with a weight decay of their
  // own.
  std::vector<std::string> exclude_from_decay = {};
  GradientClip clip = {};
  bool multi_precision = false;
  // Numbers of the optimizer's option struct by name, such as {"beta2", 0.95}; 0 or 1 for a bool.
  // All other options have their defaults.
  std::map<std::string, double> options = {};
};

// Returns the types of the update ops: "adam", "adamw", …, in ascending order.
const std::vector<std::string>& OptimizerNames();
// Returns the names that NamedOptimizer::options may have for this optimizer, in ascending order.
// Throws an Error (kInvalidArgument) for an unknown optimizer.
std::vector<std::string> OptimizerOptionNames(const std::string& optimizer);

// Makes the optimizer. Throws an Error (kInvalidArgument) for an unknown name or option, a negative
// weight_decay, a bool option other than 0 and 1, exclude_from_decay for an optimizer without a
// decay of its own, and for options that the optimizer refuses.
std::unique_ptr<Optimizer> MakeOptimizer(
    const NamedOptimizer& named, std::source_location site = std::source_location::current());

}  // namespace skiff::optimizer
