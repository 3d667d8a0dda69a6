// The programs that train and evaluate an image classifier, made from its network.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "framework/builder/variable.h"
#include "framework/training/optimization.h"
#include "framework/training/training_program.h"
#include "models/common/dataset.h"

namespace skiff::models {

// Appends a network: from images [-1, channels, height, width] to logits [-1, classes].
using BuildLogits = std::function<Variable(const Variable& image, int64_t classes)>;

// The programs, and the names of variables in them.
struct ClassifierProgram : training::TrainingProgram {
  std::string image;          // float32 [-1, channels, height, width], fed
  std::string label;          // int64 [-1, 1], fed
  std::string probabilities;  // float32 [-1, classes]
  std::string accuracy;       // float32 scalar, the batch's share of right answers
};

// Builds the programs. The loss is the mean cross-entropy of a batch. `seed` determines initial
// values and random ops. Throws what CheckOptimizationOptions, the layers and the averages throw.
ClassifierProgram BuildClassifier(const ImageDataset& dataset, const BuildLogits& build_logits,
                                  const training::OptimizationOptions& options, uint64_t seed);

}  // namespace skiff::models
