// Learning rates and their schedules, computed by ops in the main program.
//
// A schedule reads the step counter @LR_DECAY_COUNTER@, an int64 persistable that counts the runs
// of the training program, 0 in the first, or its rounds where gradients are merged
// (update_condition.h). A second main program of the same startup program has a counter of its own,
// @LR_DECAY_COUNTER@_<n>. All ops of a schedule have the role LRSched, so a program cloned for
// evaluation has none of them and leaves the counter alone. There is no control flow: a choice is a
// sum of terms weighted by comparisons, exactly 0 or 1.
//
//   auto rate = learning_rate::Cosine({.start = 0.1f, .steps_per_epoch = 100, .epochs = 90});
//   optimizer::Momentum({.learning_rate = rate, .momentum = 0.9f}).Minimize(loss);
#pragma once

#include <cstdint>
#include <source_location>
#include <utility>
#include <vector>

#include "framework/builder/variable.h"

namespace skiff {

// The learning rate of an optimizer: a number, or a float32 or float64 variable of shape [1], which
// it casts to the dtype of the parameters.
class LearningRate {
 public:
  // NOLINTBEGIN(google-explicit-constructor): {.learning_rate = 0.1f}
  LearningRate(double value) : value_(value) {}
  LearningRate(Variable variable) : variable_(std::move(variable)) {}
  // NOLINTEND(google-explicit-constructor)

  bool is_constant() const { return !variable_.defined(); }
  double value() const { return value_; }
  const Variable& variable() const { return variable_; }

 private:
  double value_ = 0.0;
  Variable variable_;
};

namespace learning_rate {

using Site = std::source_location;

// Schedules return a float32 variable [1]. They throw an Error (kInvalidArgument) if a number of
// steps or epochs, model_width, a factor of decay (gamma, decay_rate), a factor of lengths or a
// divisor isn't positive, or if a rate or a number that follows from the options isn't finite.

// Returns a persistable learning_rate_<n>, which the startup program sets. The value stays until
// somebody assigns another value in the scope (training::SetLearningRate). Throws an Error
// (kInvalidArgument) if the value is negative or not finite.
Variable Constant(double value, DType dtype = DType::kFloat32, Site site = Site::current());

// values[i] for steps in [boundaries[i - 1], boundaries[i]). Throws an Error (kInvalidArgument) if
// there is no boundary, if the boundaries don't ascend, or if there isn't one value more.
Variable Piecewise(const std::vector<int64_t>& boundaries, const std::vector<float>& values,
                   Site site = Site::current());

struct StepOptions {
  float start = 0.1f;
  int64_t step_size = 1;  // steps between two decays
  float gamma = 0.1f;     // factor of a decay
};
// start · gamma^⌊step / step_size⌋
Variable Step(const StepOptions& options, Site site = Site::current());

struct ExponentialOptions {
  float start = 0.1f;
  int64_t decay_steps = 1;
  float decay_rate = 0.9f;  // positive
  bool staircase = false;   // whole numbers of decays only
};
// start · decay_rate^(step / decay_steps)
Variable Exponential(const ExponentialOptions& options, Site site = Site::current());

struct PolynomialOptions {
  float start = 0.1f;
  int64_t decay_steps = 1;
  float end = 1e-4f;
  float power = 1.0f;
  bool cycle = false;  // starts again, each time with a multiple of decay_steps
};
// (start - end) · (1 - min(step, decay_steps) / decay_steps)^power + end
Variable Polynomial(const PolynomialOptions& options, Site site = Site::current());

struct CosineOptions {
  float start = 0.1f;
  int64_t steps_per_epoch = 1;
  int64_t epochs = 1;
};
// start / 2 · (cos(π · ⌊step / steps_per_epoch⌋ / epochs) + 1)
Variable Cosine(const CosineOptions& options, Site site = Site::current());

struct CosineRestartsOptions {
  float start = 0.1f;
  float end = 0.0f;
  int64_t first_steps = 1;  // of the first cycle; T_0
  int64_t factor = 1;       // by which each cycle is longer than the last; T_mult
};
// end + (start - end) / 2 · (cos(π · t / T) + 1), in step t = 0, 1, … of a cycle of T steps. Each
// cycle begins with `start` again (Loshchilov and Hutter 2017).
Variable CosineRestarts(const CosineRestartsOptions& options, Site site = Site::current());

struct OneCycleOptions {
  float peak = 0.1f;
  int64_t total_steps = 2;
  float rising_share = 0.3f;     // of the steps, in (0, 1)
  float start_divisor = 25.0f;   // start = peak / start_divisor
  float end_divisor = 10000.0f;  // end = start / end_divisor
};
// Rises from `start` to `peak` in step p = rising_share · total_steps - 1, then falls to `end` in
// step total_steps - 1 and stays there, each time along half a cosine (Smith and Topin 2018; the
// numbers of PyTorch's OneCycleLR). Throws an Error (kInvalidArgument) if p isn't between 0 and
// total_steps - 1.
Variable OneCycle(const OneCycleOptions& options, Site site = Site::current());

struct WarmupOptions {
  int64_t warmup_steps = 1;
  float start = 0.0f;
  float end = 0.1f;
};
// start + (end - start) · step / warmup_steps before warmup_steps, then `after`.
Variable LinearWarmup(const LearningRate& after, const WarmupOptions& options,
                      Site site = Site::current());

struct NoamOptions {
  int64_t model_width = 512;
  int64_t warmup_steps = 4000;
  float factor = 1.0f;
};
// factor · model_width^-½ · min(n^-½, n · warmup_steps^-1½) with n = step + 1
// (Vaswani et al. 2017).
Variable Noam(const NoamOptions& options, Site site = Site::current());

}  // namespace learning_rate
}  // namespace skiff
