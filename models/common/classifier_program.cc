#include "models/common/classifier_program.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/learning_rate.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric.h"
#include "framework/builder/optimizer.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/exponential_moving_average.h"
#include "framework/builder/optimizer/model_average.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/regularizer.h"

namespace skiff::models {
namespace {

void CheckOptions(const OptimizationOptions& options) {
  SKIFF_ENFORCE(options.learning_rate >= 0 && std::isfinite(options.learning_rate),
                kInvalidArgument, "learning_rate = ", options.learning_rate,
                ": expected a finite number, not negative");
  SKIFF_ENFORCE(options.weight_decay >= 0 && std::isfinite(options.weight_decay), kInvalidArgument,
                "weight_decay = ", options.weight_decay,
                ": expected a finite number, not negative");
  SKIFF_ENFORCE(options.total_steps >= 1, kInvalidArgument, "total_steps = ", options.total_steps,
                ": expected at least 1");
  SKIFF_ENFORCE(options.warmup_steps >= 0 && options.warmup_steps < options.total_steps,
                kInvalidArgument, "warm-up over ", options.warmup_steps, " of ",
                options.total_steps, " steps: expected at least one step after it");
}

Variable ScheduledRate(const OptimizationOptions& options) {
  const float base = options.learning_rate;
  switch (options.schedule) {
    case ScheduleKind::kConstant:
      return learning_rate::Constant(base);
    case ScheduleKind::kCosine:
      // An epoch of one step: the rate changes at each.
      return learning_rate::Cosine(
          {.start = base, .steps_per_epoch = 1, .epochs = options.total_steps});
    case ScheduleKind::kStep: {
      const int64_t half = std::max<int64_t>(1, options.total_steps / 2);
      const int64_t three_quarters = std::max(half + 1, options.total_steps * 3 / 4);
      return learning_rate::Piecewise({half, three_quarters}, {base, base / 10, base / 100});
    }
  }
  Throw(ErrorCode::kInvalidArgument, "unknown schedule");
}

Variable RateWithWarmup(const OptimizationOptions& options) {
  const Variable rate = ScheduledRate(options);
  if (options.warmup_steps == 0) return rate;
  return learning_rate::LinearWarmup(
      rate, {.warmup_steps = options.warmup_steps,
             .start = options.learning_rate / static_cast<float>(options.warmup_steps + 1),
             .end = options.learning_rate});
}

std::unique_ptr<optimizer::Optimizer> MakeOptimizer(const OptimizationOptions& options,
                                                    const Variable& rate) {
  const Regularizer decay =
      options.weight_decay > 0 ? L2Decay(options.weight_decay) : Regularizer{};
  switch (options.optimizer) {
    case OptimizerKind::kMomentum:
      return std::make_unique<optimizer::Momentum>(optimizer::MomentumOptions{
          .learning_rate = rate, .momentum = 0.9f, .regularization = decay});
    case OptimizerKind::kAdam:
      return std::make_unique<optimizer::Adam>(
          optimizer::AdamOptions{.learning_rate = rate, .regularization = decay});
    case OptimizerKind::kSgd:
      return std::make_unique<optimizer::Sgd>(
          optimizer::SgdOptions{.learning_rate = rate, .regularization = decay});
  }
  Throw(ErrorCode::kInvalidArgument, "unknown optimizer");
}

std::unique_ptr<optimizer::ParameterAverage> MakeAverage(const OptimizationOptions& options) {
  switch (options.averaging) {
    case AveragingKind::kNone:
      return nullptr;
    case AveragingKind::kWindow:
      SKIFF_ENFORCE(options.average_window >= 0 && options.average_window <= 1, kInvalidArgument,
                    "average_window = ", options.average_window, ", expected one in [0, 1]");
      return std::make_unique<optimizer::ModelAverage>(
          optimizer::ModelAverageOptions{.average_window_rate = options.average_window,
                                         .min_average_window = 1,
                                         .max_average_window = options.total_steps});
    case AveragingKind::kEma:
      SKIFF_ENFORCE(options.ema_decay >= 0 && options.ema_decay < 1, kInvalidArgument,
                    "ema_decay = ", options.ema_decay, ", expected one in [0, 1)");
      return std::make_unique<optimizer::ExponentialMovingAverage>(
          optimizer::ExponentialMovingAverageOptions{.decay = options.ema_decay});
  }
  Throw(ErrorCode::kInvalidArgument, "unknown average");
}

}  // namespace

OptimizerKind OptimizerKindFromName(const std::string& name) {
  if (name == "momentum") return OptimizerKind::kMomentum;
  if (name == "adam") return OptimizerKind::kAdam;
  if (name == "sgd") return OptimizerKind::kSgd;
  Throw(ErrorCode::kInvalidArgument, "optimizer \"", name, "\": expected momentum, adam or sgd");
}

ScheduleKind ScheduleKindFromName(const std::string& name) {
  if (name == "constant") return ScheduleKind::kConstant;
  if (name == "cosine") return ScheduleKind::kCosine;
  if (name == "step") return ScheduleKind::kStep;
  Throw(ErrorCode::kInvalidArgument, "schedule \"", name, "\": expected constant, cosine or step");
}

AveragingKind AveragingKindFromName(const std::string& name) {
  if (name == "none") return AveragingKind::kNone;
  if (name == "window") return AveragingKind::kWindow;
  if (name == "ema") return AveragingKind::kEma;
  Throw(ErrorCode::kInvalidArgument, "model_average \"", name, "\": expected none, window or ema");
}

ClassifierProgram BuildClassifier(const ImageDataset& dataset, const BuildLogits& build_logits,
                                  const OptimizationOptions& options, uint64_t seed) {
  CheckOptions(options);
  ClassifierProgram result;
  result.main = std::make_unique<Program>();
  result.startup = std::make_unique<Program>();
  result.main->seed = seed;
  result.startup->seed = seed;
  const ProgramGuard guard(result.main.get(), result.startup.get());

  const Variable image =
      layers::Data("image", {-1, dataset.channels, dataset.height, dataset.width});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const Variable logits = build_logits(image, dataset.classes);
  const Variable probabilities = layers::Softmax(logits);
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
  const Variable accuracy = layers::Accuracy(probabilities, label);
  result.image = image;
  result.label = label;
  result.probabilities = probabilities;
  result.loss = loss;
  result.accuracy = accuracy;
  // Before the optimizer: evaluation shares nothing with it.
  result.test = result.main->CloneForTest();

  const Variable rate = RateWithWarmup(options);
  MakeOptimizer(options, rate)->Minimize(loss);
  result.learning_rate = rate;
  result.average = MakeAverage(options);
  return result;
}

}  // namespace skiff::models
