// The settings of an optimization: optimizer, learning-rate schedule, clipping and averages, as
// plain options that a command line can fill.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/builder/optimizer/parameter_average.h"
#include "framework/builder/variable.h"
#include "framework/precision/half_report.h"
#include "framework/precision/precision_options.h"

namespace skiff::training {

enum class ScheduleKind {
  kConstant,
  kCosine,  // falls to 0 over all updates along half a cosine
  kLinear,  // falls to 0 over all updates along a straight line
  kStep,    // a tenth after one half of all updates, a hundredth after three quarters
};
// Throws an Error (kInvalidArgument) that names the choices: constant, cosine,
// linear, step.
ScheduleKind ScheduleKindFromName(const std::string& name);

// Which average of the parameters is kept to evaluate with (framework/builder/optimizer).
enum class AveragingKind {
  kNone,
  kWindow,  // ModelAverage
  kEma,     // ExponentialMovingAverage
};
// Throws an Error (kInvalidArgument) that names the choices: none, window, ema.
AveragingKind AveragingKindFromName(const std::string& name);

// Throws an Error (kInvalidArgument) that names the choices, float32, bfloat16 and float16, after
// what the name is for.
DType PrecisionFromName(std::string_view what, const std::string& name);
// The same: parameters and casts.
PrecisionLevel PrecisionLevelFromName(const std::string& name);
// PrecisionOptions::loss_scaling of "auto", "dynamic", or a number, which is a scale that stays.
// Throws an Error (kInvalidArgument) for any other text.
std::optional<LossScaling> LossScalingFromText(const std::string& text);

struct OptimizationOptions {
  std::string optimizer = "momentum";  // one of optimizer::OptimizerNames()
  // Of the optimizer, by name; an option that is missing has its default (NamedOptimizer).
  std::map<std::string, double> optimizer_options = {};
  float learning_rate = 0.1f;
  ScheduleKind schedule = ScheduleKind::kCosine;
  int64_t total_steps = 1;  // runs of the training program
  // So many steps make one update, by the mean of their gradients (MinimizeOptions).
  int64_t gradient_merge_steps = 1;
  bool skip_non_finite = false;  // leaves out updates with a gradient that isn't finite
  // The rate grows linearly over these first updates. -1: over the first tenth of all.
  int64_t warmup_updates = 0;
  // The optimizer's own decay, if there is one (adamw, lamb, lars_momentum), else L2
  // regularization.
  float weight_decay = 1e-4f;
  std::vector<std::string> exclude_from_decay = {};  // parts of names; only for an own decay
  float clip_norm = 0.0f;                            // of all gradients together; 0: no clipping
  AveragingKind averaging = AveragingKind::kNone;
  float average_window = 0.15f;  // of kWindow: a window is this share of the steps so far
  float ema_decay = 0.999f;      // of kEma
  PrecisionOptions precision = {};
};

// Throws an Error (kInvalidArgument) for a rate or a norm below 0, a warm-up of all updates or
// below -1, and what MakeOptimizer and the averages refuse without a program. For callers that have
// a program to build first.
void CheckOptimizationOptions(const OptimizationOptions& options);

struct Optimization {
  Variable learning_rate = {};                                // [1]
  std::unique_ptr<optimizer::ParameterAverage> average = {};  // nullptr: nothing is averaged
  std::optional<HalfReport> half = {};                        // Minimized::half
};

// Appends the ops that train the parameters of `loss` to the default programs. Throws what
// CheckOptimizationOptions, Minimize and the averages throw.
Optimization Optimize(const Variable& loss, const OptimizationOptions& options);

}  // namespace skiff::training
