#include "framework/training/optimization.h"

#include <algorithm>
#include <cmath>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/builder/gradient_clip.h"
#include "framework/builder/learning_rate.h"
#include "framework/builder/optimizer/exponential_moving_average.h"
#include "framework/builder/optimizer/model_average.h"
#include "framework/builder/optimizer/named_optimizer.h"

namespace skiff::training {
namespace {

optimizer::NamedOptimizer Named(const OptimizationOptions& options, const LearningRate& rate) {
  return {.name = options.optimizer,
          .learning_rate = rate,
          .weight_decay = options.weight_decay,
          .exclude_from_decay = options.exclude_from_decay,
          .clip = options.clip_norm > 0 ? ClipByGlobalNorm(options.clip_norm) : GradientClip{},
          .options = options.optimizer_options};
}

// A round that the end of the training cuts off makes none.
int64_t Updates(const OptimizationOptions& options) {
  return std::max<int64_t>(1, options.total_steps / options.gradient_merge_steps);
}

Variable ScheduledRate(const OptimizationOptions& options) {
  const float base = options.learning_rate;
  const int64_t updates = Updates(options);
  switch (options.schedule) {
    case ScheduleKind::kConstant:
      return learning_rate::Constant(base);
    case ScheduleKind::kCosine:
      // An epoch of one step: the rate changes at each.
      return learning_rate::Cosine({.start = base, .steps_per_epoch = 1, .epochs = updates});
    case ScheduleKind::kLinear:
      return learning_rate::Polynomial({.start = base, .decay_steps = updates, .end = 0});
    case ScheduleKind::kStep: {
      const int64_t half = std::max<int64_t>(1, updates / 2);
      // Boundaries must ascend, also for a training of one or two steps.
      const int64_t three_quarters = std::max(half + 1, updates * 3 / 4);
      return learning_rate::Piecewise({half, three_quarters}, {base, base / 10, base / 100});
    }
  }
  Throw(ErrorCode::kInvalidArgument, "unknown schedule");
}

Variable RateWithWarmup(const OptimizationOptions& options) {
  const Variable rate = ScheduledRate(options);
  const int64_t warmup =
      options.warmup_updates == -1 ? Updates(options) / 10 : options.warmup_updates;
  if (warmup == 0) return rate;
  return learning_rate::LinearWarmup(
      rate, {.warmup_steps = warmup,
             .start = options.learning_rate / static_cast<float>(warmup + 1),
             .end = options.learning_rate});
}

std::unique_ptr<optimizer::ParameterAverage> MakeAverage(const OptimizationOptions& options) {
  switch (options.averaging) {
    case AveragingKind::kNone:
      return nullptr;
    case AveragingKind::kWindow:
      return std::make_unique<optimizer::ModelAverage>(
          optimizer::ModelAverageOptions{.average_window_rate = options.average_window,
                                         .min_average_window = 1,
                                         .max_average_window = Updates(options)});
    case AveragingKind::kEma:
      return std::make_unique<optimizer::ExponentialMovingAverage>(
          optimizer::ExponentialMovingAverageOptions{.decay = options.ema_decay});
  }
  Throw(ErrorCode::kInvalidArgument, "unknown average");
}

}  // namespace

ScheduleKind ScheduleKindFromName(const std::string& name) {
  if (name == "constant") return ScheduleKind::kConstant;
  if (name == "cosine") return ScheduleKind::kCosine;
  if (name == "linear") return ScheduleKind::kLinear;
  if (name == "step") return ScheduleKind::kStep;
  Throw(ErrorCode::kInvalidArgument, "schedule \"", name,
        "\": expected constant, cosine, linear or step");
}

AveragingKind AveragingKindFromName(const std::string& name) {
  if (name == "none") return AveragingKind::kNone;
  if (name == "window") return AveragingKind::kWindow;
  if (name == "ema") return AveragingKind::kEma;
  Throw(ErrorCode::kInvalidArgument, "model_average \"", name, "\": expected none, window or ema");
}

DType PrecisionFromName(std::string_view what, const std::string& name) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    if (name == DTypeName(dtype)) return dtype;
  }
  Throw(ErrorCode::kInvalidArgument, what, " \"", name,
        "\": expected float32, bfloat16 or float16");
}

PrecisionLevel PrecisionLevelFromName(const std::string& name) {
  if (name == "parameters") return PrecisionLevel::kParameters;
  if (name == "casts") return PrecisionLevel::kCasts;
  Throw(ErrorCode::kInvalidArgument, "precision_level \"", name,
        "\": expected parameters or casts");
}

std::optional<LossScaling> LossScalingFromText(const std::string& text) {
  if (text == "auto") return std::nullopt;
  if (text == "dynamic") return LossScaling{};
  const std::optional<float> number = ParseNumber<float>(text);
  SKIFF_ENFORCE(number && *number > 0, kInvalidArgument, "loss_scale \"", text,
                "\": expected auto, dynamic or a positive number");
  return LossScaling{.initial = *number, .is_dynamic = false};
}

void CheckOptimizationOptions(const OptimizationOptions& options) {
  SKIFF_ENFORCE(options.learning_rate >= 0 && std::isfinite(options.learning_rate),
                kInvalidArgument, "learning_rate = ", options.learning_rate,
                ": expected a finite number, not negative");
  SKIFF_ENFORCE(options.clip_norm >= 0 && std::isfinite(options.clip_norm), kInvalidArgument,
                "clip_norm = ", options.clip_norm, ": expected a finite number, not negative");
  SKIFF_ENFORCE(options.total_steps >= 1, kInvalidArgument, "total_steps = ", options.total_steps,
                ": expected at least 1");
  SKIFF_ENFORCE(options.gradient_merge_steps >= 1, kInvalidArgument,
                "gradient_merge = ", options.gradient_merge_steps, ": expected at least 1 step");
  // A warm-up of all updates would never reach the learning rate.
  SKIFF_ENFORCE(options.warmup_updates >= -1 && options.warmup_updates < Updates(options),
                kInvalidArgument, "warm-up over ", options.warmup_updates, " of ", Updates(options),
                " updates: expected 0 to ", Updates(options) - 1, ", or -1 for a tenth of them");
  SKIFF_ENFORCE(options.average_window >= 0 && options.average_window <= 1, kInvalidArgument,
                "average_window = ", options.average_window, ", expected one in [0, 1]");
  SKIFF_ENFORCE(options.ema_decay >= 0 && options.ema_decay < 1, kInvalidArgument,
                "ema_decay = ", options.ema_decay, ", expected one in [0, 1)");
  // Only for its Errors about the optimizer's options.
  optimizer::MakeOptimizer(Named(options, options.learning_rate));
}

Optimization Optimize(const Variable& loss, const OptimizationOptions& options) {
  CheckOptimizationOptions(options);
  Optimization result;
  result.learning_rate = RateWithWarmup(options);
  result.half = optimizer::MakeOptimizer(Named(options, result.learning_rate))
                    ->Minimize(loss, {.gradient_merge = {.steps = options.gradient_merge_steps},
                                      .skip_non_finite = options.skip_non_finite,
                                      .precision = options.precision})
                    .half;
  // After Minimize: an average takes the parameters that the program updates.
  result.average = MakeAverage(options);
  return result;
}

}  // namespace skiff::training
