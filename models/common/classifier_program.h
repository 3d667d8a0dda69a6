// The programs that train and evaluate an image classifier, made from its network.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "framework/builder/optimizer/parameter_average.h"
#include "framework/builder/variable.h"
#include "framework/ir/program.h"
#include "models/common/dataset.h"

namespace skiff::models {

// Appends a network: from images [-1, channels, height, width] to logits [-1, classes].
using BuildLogits = std::function<Variable(const Variable& image, int64_t classes)>;

enum class OptimizerKind { kMomentum, kAdam, kSgd };
enum class ScheduleKind {
  kConstant,
  kCosine,  // falls to 0 over total_steps along half a cosine
  kStep,    // a tenth from one half of total_steps on, a hundredth from three quarters on
};
// Error (kInvalidArgument) naming the choices: momentum, adam, sgd; constant, cosine, step.
OptimizerKind OptimizerKindFromName(const std::string& name);
ScheduleKind ScheduleKindFromName(const std::string& name);

// What is kept beside the parameters to evaluate with (framework/builder/optimizer).
enum class AveragingKind {
  kNone,
  kWindow,  // ModelAverage
  kEma,     // ExponentialMovingAverage
};
// Error (kInvalidArgument) naming the choices: none, window, ema.
AveragingKind AveragingKindFromName(const std::string& name);

struct OptimizationOptions {
  OptimizerKind optimizer = OptimizerKind::kMomentum;  // momentum 0.9
  float learning_rate = 0.1f;
  ScheduleKind schedule = ScheduleKind::kCosine;
  int64_t total_steps = 1;
  int64_t warmup_steps = 0;    // the rate grows linearly over these first
  float weight_decay = 1e-4f;  // L2, of all parameters
  AveragingKind averaging = AveragingKind::kNone;
  float average_window = 0.15f;  // of kWindow: a window is this share of the steps so far
  float ema_decay = 0.999f;      // of kEma
};

// Variables are named by what they hold.
struct ClassifierProgram {
  std::unique_ptr<Program> main;     // a training step
  std::unique_ptr<Program> startup;  // initialises what `main` keeps
  std::unique_ptr<Program> test;     // evaluation, with the same parameters
  std::string image;                 // float32 [-1, channels, height, width], fed
  std::string label;                 // int64 [-1, 1], fed
  std::string probabilities;         // float32 [-1, classes]
  std::string loss;                  // float32 scalar, the batch's mean cross-entropy
  std::string accuracy;              // float32 scalar, the batch's share of right answers
  std::string learning_rate;         // float32 [1]; only in `main`
  // What `main` averages: parameters and running statistics. nullptr: nothing.
  std::unique_ptr<optimizer::ParameterAverage> average;
};

// `seed` is that of initial values and random ops. Error (kInvalidArgument) for a rate or a decay
// below 0, a warm-up of all steps, and as the layers and the averages.
ClassifierProgram BuildClassifier(const ImageDataset& dataset, const BuildLogits& build_logits,
                                  const OptimizationOptions& options, uint64_t seed);

}  // namespace skiff::models
