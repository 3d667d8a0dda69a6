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
  // The optimizer's own weight decay if it has one (adamw, lamb, lars_momentum); else L2
  // regularization.
  float weight_decay = 0.0f;
  // Parts of names: parameters that don't decay. Only for optimizers with a weight decay of their
  // own.
  std::vector<std::string> exclude_from_decay = {};
  GradientClip clip = {};
  bool multi_precision = false;
  // Numbers of the optimizer's option struct by name, such as {"beta2", 0.95}; 0 or 1 for a bool.
  // What isn't named has its default.
  std::map<std::string, double> options = {};
};

// Returns the types of the update ops: "adam", "adamw", …, in ascending order.
const std::vector<std::string>& OptimizerNames();
// Returns the names that NamedOptimizer::options may have for this optimizer, in ascending order.
// Throws an Error (kInvalidArgument) for an unknown optimizer.
std::vector<std::string> OptimizerOptionNames(const std::string& optimizer);

// Makes the optimizer. Throws an Error (kInvalidArgument) for an unknown name or option, a negative
// weight_decay, a bool option that is neither 0 nor 1, exclude_from_decay for an optimizer that has
// no decay of its own, and what the optimizer itself refuses.
std::unique_ptr<Optimizer> MakeOptimizer(
    const NamedOptimizer& named, std::source_location site = std::source_location::current());

}  // namespace skiff::optimizer
