// Schedules are formulas over the step counter, without control flow: a choice is a sum of terms,
// each multiplied by a comparison (0 or 1). So schedules are ordinary ops, which plans, checkpoints
// and exported programs handle like any others.
#include "framework/builder/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/current_block.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/step_counter.h"
#include "framework/builder/tensor_layers.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

bool IsStepCounter(const std::string& name) {
  return name == kStepCounter || name.starts_with(StrCat(kStepCounter, "_"));
}

}  // namespace

size_t FindStepAdvance(const Block& root) {
  const auto& ops = root.ops();
  const auto found = std::ranges::find_if(ops, [](const std::unique_ptr<Op>& op) {
    return op->Output("Out").size() == 1 && IsStepCounter(op->Output("Out")[0]);
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
  // Returns a number of the formula, all of which pass here.
  float Finite(double value) const {
    const auto rounded = static_cast<float>(value);
    call.Enforce(std::isfinite(rounded), "a number of the schedule is ", value,
                 ", expected finite numbers of float32");
    return rounded;
  }

  Site site;
  LayerCall call;
  OpRoleGuard role;
};

// int64 [1]: the number of earlier steps. Several schedules of a program share one counter, which
// is advanced before the first of them reads it.
Variable StepCounter(const Schedule& schedule) {
  Block* root = DefaultMainProgram().root();
  const size_t advance = FindStepAdvance(*root);
  if (advance < root->ops().size()) return {root, root->ops()[advance]->Output("Out")[0]};
  // -1, since the counter is incremented before it is read: the first step reads 0, as in Fluid.
  const Variable counter =
      CreatePersistable(OwnPersistableName(kStepCounter), {1}, DType::kInt64, -1.0, schedule.site);
  return Increment(counter, 1.0f, schedule.site);
}

Variable Number(const Schedule& schedule, double value) {
  return FillConstant({1}, DType::kFloat32, schedule.Finite(value), schedule.site);
}

Variable StepAsFloat(const Schedule& schedule) {
  return layers::Cast(StepCounter(schedule), DType::kFloat32, schedule.site);
}

// A division: multiplying by the rounded reciprocal would miss whole numbers.
Variable Divide(const Schedule& schedule, const Variable& x, int64_t divisor) {
  return ElementwiseDiv(x, Number(schedule, static_cast<double>(divisor)), {}, schedule.site);
}

Variable Linear(const Schedule& schedule, const Variable& x, double scale, double bias) {
  return layers::Scale(x, {.scale = schedule.Finite(scale), .bias = schedule.Finite(bias)},
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

// `before` where the float32 `reached` is 0, `after` where it is 1: one of the terms is 0, so the
// sum is exactly the other.
Variable Choice(const Schedule& schedule, const Variable& reached, const Variable& before,
                const Variable& after) {
  const Variable is_before = Linear(schedule, reached, -1.0, 1.0);
  return ElementwiseAdd(ElementwiseMul(before, is_before, {}, schedule.site),
                        ElementwiseMul(after, reached, {}, schedule.site), {}, schedule.site);
}

// From `start` at share 0 to `end` at share 1, along half a cosine.
Variable HalfCosine(const Schedule& schedule, const Variable& share, double start, double end) {
  const double half = 0.5 * (start - end);
  const Variable cosine = Cos(Linear(schedule, share, std::numbers::pi, 0.0), schedule.site);
  return Linear(schedule, cosine, half, half + end);
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
  call.Enforce(value >= 0.0 && std::isfinite(value), "the learning rate is ", value,
               ", expected a finite number from 0 on");
  return CreatePersistable(UniquePersistableName("learning_rate"), {1}, dtype, value, site);
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

Variable CosineRestarts(const CosineRestartsOptions& options, Site site) {
  const Schedule schedule("cosine_restarts", site);
  schedule.Positive(options.first_steps, "first_steps");
  schedule.Positive(options.factor, "factor");
  // float64, which holds each whole number below 2^53: a restart is at exactly its step.
  const auto number = [&](double value) { return FillConstant({1}, DType::kFloat64, value, site); };
  const Variable step = layers::Cast(StepCounter(schedule), DType::kFloat64, site);
  const auto first = static_cast<double>(options.first_steps);
  Variable begin;   // of the cycle
  Variable length;  // of the cycle
  if (options.factor == 1) {
    const Variable cycle = Floor(ElementwiseDiv(step, number(first), {}, site), site);
    begin = ElementwiseMul(cycle, number(first), {}, site);
    length = number(first);
  } else {
    // Cycle n begins at first · (factor^n - 1) / (factor - 1). The logarithm tells n; it rounds, so
    // it only has to tell n or n + 1, and the begin of the latter decides.
    const auto factor = static_cast<double>(options.factor);
    const auto begin_of = [&](const Variable& power) {
      const Variable cycles = ElementwiseDiv(ElementwiseSub(power, number(1.0), {}, site),
                                             number(factor - 1.0), {}, site);
      return ElementwiseMul(cycles, number(first), {}, site);
    };
    const Variable reached = ElementwiseAdd(
        ElementwiseMul(step, number((factor - 1.0) / first), {}, site), number(1.0), {}, site);
    const Variable exact =
        ElementwiseMul(Log(reached, site), number(1.0 / std::log(factor)), {}, site);
    const Variable nearest = Floor(Linear(schedule, exact, 1.0, 0.5), site);
    const Variable power = Round(ElementwisePow(number(factor), nearest, {}, site), site);
    const Variable is_later = LessThan(step, begin_of(power), site);
    const Variable earlier = ElementwiseDiv(power, number(factor), {}, site);
    const Variable chosen = Where(is_later, earlier, power, site);
    begin = begin_of(chosen);
    length = ElementwiseMul(chosen, number(first), {}, site);
  }
  const Variable share = ElementwiseDiv(ElementwiseSub(step, begin, {}, site), length, {}, site);
  return Finished(
      HalfCosine(schedule, layers::Cast(share, DType::kFloat32, site), options.start, options.end));
}

Variable OneCycle(const OneCycleOptions& options, Site site) {
  const Schedule schedule("one_cycle", site);
  const double last = static_cast<double>(options.total_steps) - 1.0;
  const double peak =
      static_cast<double>(options.rising_share) * static_cast<double>(options.total_steps) - 1.0;
  schedule.call.Enforce(options.start_divisor > 0.0f && options.end_divisor > 0.0f,
                        "start_divisor = ", options.start_divisor,
                        ", end_divisor = ", options.end_divisor, ", expected positive numbers");
  schedule.call.Enforce(0.0 < peak && peak < last, "the peak is in step ", peak,
                        ", rising_share · total_steps - 1, expected one between 0 and the last, ",
                        last);
  const float start = options.peak / options.start_divisor;
  const Variable step = StepAsFloat(schedule);
  const Variable rising =
      HalfCosine(schedule, Linear(schedule, step, 1.0 / peak, 0.0), start, options.peak);
  const Variable share = Linear(schedule, step, 1.0 / (last - peak), -peak / (last - peak));
  const Variable falling = HalfCosine(schedule, Clip(share, 0.0f, 1.0f, site), options.peak,
                                      start / options.end_divisor);
  const Variable is_past = Reached(schedule, static_cast<int64_t>(std::floor(peak)) + 1);
  return Finished(Choice(schedule, is_past, rising, falling));
}

Variable LinearWarmup(const LearningRate& after, const WarmupOptions& options, Site site) {
  const Schedule schedule("linear_lr_warmup", site);
  schedule.Positive(options.warmup_steps, "warmup_steps");
  const Variable reached = Reached(schedule, options.warmup_steps);
  const Variable share = Divide(schedule, StepAsFloat(schedule), options.warmup_steps);
  const Variable rising =
      Linear(schedule, share, static_cast<double>(options.end) - options.start, options.start);
  return Finished(Choice(schedule, reached, rising, AsVariable(after, site)));
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
