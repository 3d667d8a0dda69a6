// Schedules are formulas over the step counter, without control flow: a choice is a sum of terms,
// each multiplied by a comparison (0 or 1). So schedules are ordinary ops, which plans, checkpoints
// and exported programs handle like any others.
#include "framework/builder/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "framework/builder/control.h"
#include "framework/builder/current_block.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/step_counter.h"
#include "framework/builder/tensor.h"
#include "framework/ir/op_role.h"

namespace skiff {

size_t FindStepAdvance(const Block& root) {
  const auto& ops = root.ops();
  const auto found = std::ranges::find_if(ops, [](const std::unique_ptr<Op>& op) {
    return op->Output("Out").size() == 1 && op->Output("Out")[0] == kStepCounter;
  });
  return static_cast<size_t>(found - ops.begin());
}

}  // namespace skiff

namespace skiff::learning_rate {
namespace {

using namespace skiff::layers;  // NOLINT(google-build-using-namespace): formulas read like formulas

// Opens a schedule: its ops get the role, its checks the caller's line.
struct Schedule {
  Schedule(const char* type, const Site& site)
      : site(site), call(type, type, site), role(kRoleLRSched) {}

  void Positive(int64_t value, const char* name) const {
    call.Enforce(value > 0, name, " = ", value, ", expected a positive number");
  }

  Site site;
  LayerCall call;
  OpRoleGuard role;
};

// int64 [1]: the number of earlier steps. Several schedules of a program share one counter, which
// is advanced before the first of them reads it.
Variable StepCounter(const Schedule& schedule) {
  // -1, since the counter is incremented before it is read: the first step reads 0, as in Fluid.
  const Variable counter = CreatePersistable(kStepCounter, {1}, DType::kInt64, -1.0, schedule.site);
  const Block& root = *DefaultMainProgram().root();
  if (FindStepAdvance(root) == root.ops().size()) Increment(counter, 1.0f, schedule.site);
  return counter;
}

Variable Number(const Schedule& schedule, double value) {
  return FillConstant({1}, DType::kFloat32, value, schedule.site);
}

Variable StepAsFloat(const Schedule& schedule) {
  return layers::Cast(StepCounter(schedule), DType::kFloat32, schedule.site);
}

// A division: multiplying by the rounded reciprocal would miss whole numbers.
Variable Divide(const Schedule& schedule, const Variable& x, int64_t divisor) {
  return ElementwiseDiv(x, Number(schedule, static_cast<double>(divisor)), {}, schedule.site);
}

Variable Linear(const Schedule& schedule, const Variable& x, double scale, double bias) {
  return layers::Scale(x, {.scale = static_cast<float>(scale), .bias = static_cast<float>(bias)},
                       schedule.site);
}

Variable Ceiling(const Schedule& schedule, const Variable& x) {
  // ⌈x⌉ = -⌊-x⌋, which needs no other op.
  const Variable below = Floor(Linear(schedule, x, -1.0, 0.0), schedule.site);
  return Linear(schedule, below, -1.0, 0.0);
}

// Returns base^x for a positive base, as exp(x · log base): a base that is a constant needs no
// tensor.
Variable PowerOf(const Schedule& schedule, double base, const Variable& x) {
  return Exp(Linear(schedule, x, std::log(base), 0.0), schedule.site);
}

// 1 where step >= boundary, else 0; float32 [1].
Variable Reached(const Schedule& schedule, int64_t boundary) {
  const Variable limit =
      FillConstant({1}, DType::kInt64, static_cast<double>(boundary), schedule.site);
  const Variable reached = GreaterEqual(StepCounter(schedule), limit, schedule.site);
  return layers::Cast(reached, DType::kFloat32, schedule.site);
}

Variable AsVariable(const LearningRate& rate, const Site& site) {
  return rate.is_constant() ? Constant(rate.value(), DType::kFloat32, site) : rate.variable();
}

Variable Finished(const Variable& rate) {
  rate.StopGradient();
  return rate;
}

Variable Decayed(const Schedule& schedule, float start, const Variable& exponent, float rate) {
  schedule.call.Enforce(rate > 0.0f, "the decay rate is ", rate, ", expected a positive number");
  return Finished(Linear(schedule, PowerOf(schedule, rate, exponent), start, 0.0));
}

}  // namespace

Variable Constant(double value, DType dtype, Site site) {
  const LayerCall call("learning_rate", "learning_rate", site);
  call.Enforce(value >= 0.0, "the learning rate is ", value, ", expected none below 0");
  const std::string name = DefaultMainProgram().UniqueName("learning_rate");
  return CreatePersistable(name, {1}, dtype, value, site);
}

Variable Piecewise(const std::vector<int64_t>& boundaries, const std::vector<float>& values,
                   Site site) {
  const Schedule schedule("piecewise_decay", site);
  schedule.call.Enforce(values.size() == boundaries.size() + 1, boundaries.size(),
                        " boundaries and ", values.size(), " values, expected one value more");
  schedule.call.Enforce(!boundaries.empty(), "there is no boundary");
  for (size_t i = 1; i < boundaries.size(); ++i) {
    schedule.call.Enforce(boundaries[i - 1] < boundaries[i], "boundary ", boundaries[i],
                          " follows ", boundaries[i - 1], ", expected ascending ones");
  }
  // Interval i counts if its begin is reached and its end isn't. Adding up the differences of the
  // values instead would round.
  std::vector<Variable> reached;
  for (const int64_t boundary : boundaries) reached.push_back(Reached(schedule, boundary));
  std::vector<Variable> terms;
  terms.push_back(Linear(schedule, reached.front(), -values.front(), values.front()));
  for (size_t i = 1; i < boundaries.size(); ++i) {
    const Variable inside = ElementwiseSub(reached[i - 1], reached[i], {}, site);
    terms.push_back(Linear(schedule, inside, values[i], 0.0));
  }
  terms.push_back(Linear(schedule, reached.back(), values.back(), 0.0));
  return Finished(Sum(terms, site));
}

Variable Step(const StepOptions& options, Site site) {
  const Schedule schedule("step_decay", site);
  schedule.Positive(options.step_size, "step_size");
  const Variable decays = Floor(Divide(schedule, StepAsFloat(schedule), options.step_size), site);
  return Decayed(schedule, options.start, decays, options.gamma);
}

Variable Exponential(const ExponentialOptions& options, Site site) {
  const Schedule schedule("exponential_decay", site);
  schedule.Positive(options.decay_steps, "decay_steps");
  Variable decays = Divide(schedule, StepAsFloat(schedule), options.decay_steps);
  if (options.staircase) decays = Floor(decays, site);
  return Decayed(schedule, options.start, decays, options.decay_rate);
}

Variable Polynomial(const PolynomialOptions& options, Site site) {
  const Schedule schedule("polynomial_decay", site);
  schedule.Positive(options.decay_steps, "decay_steps");
  const Variable periods = Divide(schedule, StepAsFloat(schedule), options.decay_steps);
  Variable share;  // of the period that has passed
  if (options.cycle) {
    // With `cycle`, the period becomes as many times longer as steps need; it is 1 in the very
    // first step, where 0 / 0 would be NaN.
    const Variable length =
        ElementwiseMax(Ceiling(schedule, periods), Number(schedule, 1.0), {}, site);
    share = ElementwiseDiv(periods, length, {}, site);
  } else {
    share = ElementwiseMin(periods, Number(schedule, 1.0), {}, site);
  }
  Variable rest = Linear(schedule, share, -1.0, 1.0);
  if (options.power != 1.0f) {
    rest = ElementwisePow(rest, Number(schedule, options.power), {}, site);
  }
  return Finished(Linear(schedule, rest, options.start - options.end, options.end));
}

Variable Cosine(const CosineOptions& options, Site site) {
  const Schedule schedule("cosine_decay", site);
  schedule.Positive(options.steps_per_epoch, "steps_per_epoch");
  schedule.Positive(options.epochs, "epochs");
  const Variable epoch =
      Floor(Divide(schedule, StepAsFloat(schedule), options.steps_per_epoch), site);
  const Variable angle =
      Linear(schedule, epoch, std::numbers::pi / static_cast<double>(options.epochs), 0.0);
  const double half = 0.5 * options.start;
  return Finished(Linear(schedule, Cos(angle, site), half, half));
}

Variable LinearWarmup(const LearningRate& after, const WarmupOptions& options, Site site) {
  const Schedule schedule("linear_lr_warmup", site);
  schedule.Positive(options.warmup_steps, "warmup_steps");
  const Variable reached = Reached(schedule, options.warmup_steps);
  const Variable share = Divide(schedule, StepAsFloat(schedule), options.warmup_steps);
  const Variable rising =
      Linear(schedule, share, static_cast<double>(options.end) - options.start, options.start);
  // One of the factors is 0 and the other 1, so the sum is exactly one of the two terms.
  const Variable first = ElementwiseMul(rising, Linear(schedule, reached, -1.0, 1.0), {}, site);
  const Variable second = ElementwiseMul(AsVariable(after, site), reached, {}, site);
  return Finished(ElementwiseAdd(first, second, {}, site));
}

Variable Noam(const NoamOptions& options, Site site) {
  const Schedule schedule("noam_decay", site);
  schedule.Positive(options.model_width, "model_width");
  schedule.Positive(options.warmup_steps, "warmup_steps");
  // n counts from 1, since 0 to the power of -½ is infinite.
  const Variable n = Linear(schedule, StepAsFloat(schedule), 1.0, 1.0);
  const Variable falling = ElementwisePow(n, Number(schedule, -0.5), {}, site);
  const double slope = std::pow(static_cast<double>(options.warmup_steps), -1.5);
  const Variable rising = Linear(schedule, n, slope, 0.0);
  const double peak = options.factor / std::sqrt(static_cast<double>(options.model_width));
  return Finished(Linear(schedule, ElementwiseMin(falling, rising, {}, site), peak, 0.0));
}

}  // namespace skiff::learning_rate
