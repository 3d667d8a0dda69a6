// Every optimizer trains a small net in float64 for 200 steps, and a loop that is written from the
// formulas does the same: the parameters end equal but for rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adadelta.h"
#include "framework/builder/optimizer/adagrad.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/adamax.h"
#include "framework/builder/optimizer/adamw.h"
#include "framework/builder/optimizer/decayed_adagrad.h"
#include "framework/builder/optimizer/ftrl.h"
#include "framework/builder/optimizer/lamb.h"
#include "framework/builder/optimizer/lars_momentum.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/optimizer/rmsprop.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"

namespace skiff {
namespace {

constexpr int kSteps = 200;
constexpr int64_t kRows = 5;
constexpr int64_t kInputs = 3;
constexpr int64_t kHidden = 4;

// ---- The net in C++: prediction = tanh(x · w + b) · v + c, loss = mean((prediction - y)²).

struct Parameter {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<double> value;
  std::vector<double> grad;
  std::vector<std::array<double, 3>> states;  // of each element, 0 at first
};

struct Batch {
  std::vector<double> x;  // [kRows, kInputs]
  std::vector<double> y;  // [kRows, 1]
};

Batch BatchOf(int step) {
  Batch batch;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < kInputs; ++i) {
      batch.x.push_back(std::sin(1.3 * row + 0.7 * i + 0.37 * step));
    }
    batch.y.push_back(std::cos(0.9 * row + 0.11 * step));
  }
  return batch;
}

Parameter MakeParameter(const std::string& name, std::vector<int64_t> dims, double phase) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  Parameter made{.name = name, .dims = std::move(dims)};
  for (int64_t i = 0; i < count; ++i) made.value.push_back(0.5 * std::sin(phase + 2.1 * i));
  made.states.resize(made.value.size());
  return made;
}

using Net = std::array<Parameter, 4>;  // w, b, v, c

Net MakeNet() {
  return {MakeParameter("hidden.w", {kInputs, kHidden}, 0.3),
          MakeParameter("hidden.b", {kHidden}, 1.0), MakeParameter("out.w", {kHidden, 1}, 2.0),
          MakeParameter("out.b", {1}, 0.4)};
}

void ComputeGradients(const Batch& batch, Net* net) {
  auto& [w, b, v, c] = *net;
  for (Parameter& parameter : *net) parameter.grad.assign(parameter.value.size(), 0.0);
  for (int64_t row = 0; row < kRows; ++row) {
    const double* x = &batch.x[row * kInputs];
    std::array<double, kHidden> hidden;
    double prediction = c.value[0];
    for (int64_t j = 0; j < kHidden; ++j) {
      double sum = b.value[j];
      for (int64_t i = 0; i < kInputs; ++i) sum += x[i] * w.value[i * kHidden + j];
      hidden[j] = std::tanh(sum);
      prediction += hidden[j] * v.value[j];
    }
    const double slope = 2.0 * (prediction - batch.y[row]) / kRows;
    c.grad[0] += slope;
    for (int64_t j = 0; j < kHidden; ++j) {
      const double inner = slope * v.value[j] * (1 - hidden[j] * hidden[j]);
      v.grad[j] += slope * hidden[j];
      b.grad[j] += inner;
      for (int64_t i = 0; i < kInputs; ++i) w.grad[i * kHidden + j] += x[i] * inner;
    }
  }
}

// ---- What an optimizer does with the gradients, in C++.

using ForNet = std::function<void(Net&)>;
using ForParameter = std::function<void(Parameter&, int step)>;  // steps count from 1
using Element = std::array<double, 3>;
using ForElement = std::function<void(double& p, double g, Element& state, int step)>;

ForParameter Each(const ForElement& update) {
  return [update](Parameter& p, int step) {
    for (size_t i = 0; i < p.value.size(); ++i) update(p.value[i], p.grad[i], p.states[i], step);
  };
}

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

bool IsBias(const Parameter& p) { return p.name.ends_with(".b"); }

void Scale(double factor, std::vector<double>* values) {
  for (double& value : *values) value *= factor;
}

ForNet ClipsValues(double limit) {
  return [limit](Net& net) {
    for (Parameter& p : net) {
      for (double& g : p.grad) g = std::clamp(g, -limit, limit);
    }
  };
}

ForNet ClipsNorms(double limit) {
  return [limit](Net& net) {
    for (Parameter& p : net) Scale(limit / std::max(limit, Norm(p.grad)), &p.grad);
  };
}

ForNet ClipsTheNormOfAll(double limit) {
  return [limit](Net& net) {
    std::vector<double> all;
    for (const Parameter& p : net) all.insert(all.end(), p.grad.begin(), p.grad.end());
    const double factor = limit / std::max(limit, Norm(all));
    for (Parameter& p : net) Scale(factor, &p.grad);
  };
}

ForNet Decays(double l1, double l2) {
  return [l1, l2](Net& net) {
    for (Parameter& p : net) {
      for (size_t i = 0; i < p.grad.size(); ++i) {
        const double x = p.value[i];
        p.grad[i] += l2 * x + l1 * ((x > 0) - (x < 0));
      }
    }
  };
}

ForNet Both(const ForNet& first, const ForNet& second) {
  return [first, second](Net& net) {
    first(net);
    second(net);
  };
}

const ForNet kNothing = [](Net&) {};

// ---- The table. All numbers are exact in float32, as attributes of ops are.

// So small that the training itself magnifies no rounding: at this rate an error of the initial
// values grows 34-fold at most, at 1/16 (RmsProp with momentum) 460,000-fold.
constexpr double kRate = 0x1.0p-7;
constexpr double kBeta1 = 0.875;
constexpr double kBeta2 = 0.96875;
constexpr double kEpsilon = 0x1.0p-20;

struct Row {
  std::string name;
  std::shared_ptr<optimizer::Optimizer> optimizer;
  ForNet form;  // clips, then decays
  ForParameter update;
};

template <class Optimizer, class Options>
std::shared_ptr<optimizer::Optimizer> Make(const Options& options) {
  return std::make_shared<Optimizer>(options);
}

// By options of which `change` sets some otherwise.
template <class Optimizer, class Options, class Change>
std::shared_ptr<optimizer::Optimizer> MakeWith(Options options, const Change& change) {
  change(options);
  return Make<Optimizer>(options);
}

std::shared_ptr<optimizer::Optimizer> Sgd(const GradientClip& clip, const Regularizer& decay) {
  return Make<optimizer::Sgd>(
      optimizer::SgdOptions{.learning_rate = kRate, .clip = clip, .regularization = decay});
}

const ForParameter kSgd = Each([](double& p, double g, Element&, int) { p -= kRate * g; });

ForParameter Momentum(bool nesterov) {
  return Each([nesterov](double& p, double g, Element& state, int) {
    double& v = state[0];
    v = kBeta1 * v + g;
    p -= kRate * (nesterov ? g + kBeta1 * v : v);
  });
}

// Adam's step for a learning rate of 1, with moments freed of their bias.
double AdamStep(double g, Element& state, int step) {
  auto& [m, v, unused] = state;
  m = kBeta1 * m + (1 - kBeta1) * g;
  v = kBeta2 * v + (1 - kBeta2) * g * g;
  const double unbiased_m = m / (1 - std::pow(kBeta1, step));
  const double unbiased_v = v / (1 - std::pow(kBeta2, step));
  return unbiased_m / (std::sqrt(unbiased_v) + kEpsilon);
}

ForParameter AdamW(const std::function<double(const Parameter&)>& rate_of, double bias_decay) {
  return [=](Parameter& p, int step) {
    const double rate = rate_of(p);
    const double decay = IsBias(p) ? bias_decay : 0.125;
    for (size_t i = 0; i < p.value.size(); ++i) {
      p.value[i] -= rate * (AdamStep(p.grad[i], p.states[i], step) + decay * p.value[i]);
    }
  };
}

ForParameter Lamb(double bias_decay, bool always_adapts) {
  return [=](Parameter& p, int step) {
    const double decay = IsBias(p) ? bias_decay : 0.125;
    std::vector<double> steps;
    for (size_t i = 0; i < p.value.size(); ++i) {
      steps.push_back(AdamStep(p.grad[i], p.states[i], step) + decay * p.value[i]);
    }
    const bool adapts = decay > 0 || always_adapts;
    const double ratio = adapts ? Norm(p.value) / Norm(steps) : 1.0;
    for (size_t i = 0; i < p.value.size(); ++i) p.value[i] -= kRate * ratio * steps[i];
  };
}

ForParameter Lars(double bias_decay, bool adapts_without_decay) {
  return [=](Parameter& p, int) {
    constexpr double kCoefficient = 0.25;
    const double decay = IsBias(p) ? bias_decay : 0.125;
    double rate = kRate;
    if (decay > 0 || adapts_without_decay) {
      const double norm = Norm(p.value);
      rate *= kCoefficient * norm / (Norm(p.grad) + decay * norm + kEpsilon);
    }
    for (size_t i = 0; i < p.value.size(); ++i) {
      double& v = p.states[i][0];
      v = kBeta1 * v + rate * (p.grad[i] + decay * p.value[i]);
      p.value[i] -= v;
    }
  };
}

ForParameter RmsProp(double momentum, bool centered) {
  return Each([=](double& p, double g, Element& state, int) {
    auto& [square, mean, velocity] = state;
    square = kBeta2 * square + (1 - kBeta2) * g * g;
    mean = kBeta2 * mean + (1 - kBeta2) * g;
    const double variance = centered ? square - mean * mean : square;
    velocity = momentum * velocity + kRate * g / std::sqrt(variance + kEpsilon);
    p -= velocity;
  });
}

ForParameter Ftrl(double l1, double l2, double power) {
  return Each([=](double& p, double g, Element& state, int) {
    auto& [n, z, unused] = state;
    const double old_n = n;
    n += g * g;
    z += g - (std::pow(n, -power) - std::pow(old_n, -power)) / kRate * p;
    const double curvature = std::pow(n, -power) / kRate + 2 * (l2 + 1e-10);
    p = std::abs(z) > l1 + 1e-10 ? -(z - std::copysign(l1 + 1e-10, z)) / curvature : 0.0;
  });
}

std::vector<Row> Rows() {
  using namespace optimizer;  // NOLINT(google-build-using-namespace): the table
  constexpr float kB1 = kBeta1;
  constexpr float kB2 = kBeta2;
  constexpr float kEps = kEpsilon;
  const std::vector<std::string> biases = {".b"};
  const auto same_rate = [](const Parameter&) { return kRate; };
  const LarsMomentumOptions lars{.learning_rate = kRate,
                                 .momentum = kB1,
                                 .coefficient = 0.25f,
                                 .weight_decay = 0.125f,
                                 .epsilon = kEps};
  const AdamWOptions adamw{
      .learning_rate = kRate, .beta1 = kB1, .beta2 = kB2, .epsilon = kEps, .weight_decay = 0.125f};
  const LambOptions lamb{
      .learning_rate = kRate, .weight_decay = 0.125f, .beta1 = kB1, .beta2 = kB2, .epsilon = kEps};
  const RmsPropOptions rmsprop{.learning_rate = kRate, .rho = kB2, .epsilon = kEps};
  return {
      {"Sgd", Sgd({}, {}), kNothing, kSgd},
      {"ClipByValue", Sgd(ClipByValue(0.0625f), {}), ClipsValues(0.0625), kSgd},
      {"ClipByNorm", Sgd(ClipByNorm(0.125f), {}), ClipsNorms(0.125), kSgd},
      {"ClipByGlobalNorm", Sgd(ClipByGlobalNorm(0.25f), {}), ClipsTheNormOfAll(0.25), kSgd},
      {"L1Decay", Sgd({}, L1Decay(0.03125f)), Decays(0.03125, 0), kSgd},
      {"L2Decay", Sgd({}, L2Decay(0.03125f)), Decays(0, 0.03125), kSgd},
      {"ClipAndDecay", Sgd(ClipByGlobalNorm(0.25f), L2Decay(0.125f)),
       Both(ClipsTheNormOfAll(0.25), Decays(0, 0.125)), kSgd},
      {"Momentum",
       Make<optimizer::Momentum>(MomentumOptions{.learning_rate = kRate, .momentum = kB1}),
       kNothing, Momentum(false)},
      {"Nesterov",
       Make<optimizer::Momentum>(MomentumOptions{.learning_rate = kRate,
                                                 .momentum = kB1,
                                                 .use_nesterov = true,
                                                 .regularization = L2Decay(0.03125f)}),
       Decays(0, 0.03125), Momentum(true)},
      {"Lars", Make<LarsMomentum>(lars), kNothing, Lars(0.125, false)},
      {"LarsExcludesBiases",
       MakeWith<LarsMomentum>(lars,
                              [&](auto& options) {
                                options.exclude_from_decay = biases;
                                options.clip = ClipByGlobalNorm(0.25f);
                              }),
       ClipsTheNormOfAll(0.25), Lars(0, false)},
      {"LarsByNorms",
       MakeWith<LarsMomentum>(lars,
                              [&](auto& options) {
                                options.exclude_from_decay = biases;
                                options.policy = LarsMomentumOptions::Policy::kNorms;
                              }),
       kNothing, Lars(0, true)},
      {"Adam",
       Make<Adam>(AdamOptions{.learning_rate = kRate, .beta1 = kB1, .beta2 = kB2, .epsilon = kEps}),
       kNothing, Each([](double& p, double g, Element& state, int step) {
         p -= kRate * AdamStep(g, state, step);
       })},
      {"AdamW", Make<optimizer::AdamW>(adamw), kNothing, AdamW(same_rate, 0.125)},
      {"AdamWExcludesBiases",
       MakeWith<optimizer::AdamW>(adamw,
                                  [&](auto& options) { options.exclude_from_decay = biases; }),
       kNothing, AdamW(same_rate, 0)},
      {"AdamWFiltersDecay",
       MakeWith<optimizer::AdamW>(adamw,
                                  [](auto& options) {
                                    options.decay_filter = [](const std::string& name) {
                                      return name.ends_with(".w");
                                    };
                                  }),
       kNothing, AdamW(same_rate, 0)},
      {"AdamWScalesRates",
       MakeWith<optimizer::AdamW>(adamw,
                                  [](auto& options) {
                                    options.lr_ratio = [](const std::string& name) {
                                      return name.ends_with(".b") ? 0.25f : 1.0f;
                                    };
                                  }),
       kNothing, AdamW([](const Parameter& p) { return IsBias(p) ? 0.25 * kRate : kRate; }, 0.125)},
      {"Lamb", Make<optimizer::Lamb>(lamb), kNothing, Lamb(0.125, false)},
      {"LambExcludesBiases",
       MakeWith<optimizer::Lamb>(lamb, [&](auto& options) { options.exclude_from_decay = biases; }),
       kNothing, Lamb(0, false)},
      {"LambAlwaysAdapts",
       MakeWith<optimizer::Lamb>(lamb,
                                 [&](auto& options) {
                                   options.exclude_from_decay = biases;
                                   options.always_adapt = true;
                                 }),
       kNothing, Lamb(0, true)},
      {"Adamax",
       Make<Adamax>(
           AdamaxOptions{.learning_rate = kRate, .beta1 = kB1, .beta2 = kB2, .epsilon = kEps}),
       kNothing, Each([](double& p, double g, Element& state, int step) {
         auto& [m, u, unused] = state;
         m = kBeta1 * m + (1 - kBeta1) * g;
         u = std::max(std::abs(g), kBeta2 * u + kEpsilon);
         p -= kRate / (1 - std::pow(kBeta1, step)) * m / u;
       })},
      {"Adagrad",
       Make<Adagrad>(
           AdagradOptions{.learning_rate = kRate, .epsilon = kEps, .initial_accumulator = 0.5f}),
       kNothing, Each([](double& p, double g, Element& state, int step) {
         state[0] += g * g + (step == 1 ? 0.5 : 0.0);
         p -= kRate * g / (std::sqrt(state[0]) + kEpsilon);
       })},
      {"DecayedAdagrad",
       Make<DecayedAdagrad>(
           DecayedAdagradOptions{.learning_rate = kRate, .decay = kB2, .epsilon = kEps}),
       kNothing, Each([](double& p, double g, Element& state, int) {
         state[0] = kBeta2 * state[0] + (1 - kBeta2) * g * g;
         p -= kRate * g / (std::sqrt(state[0]) + kEpsilon);
       })},
      {"Adadelta",
       Make<Adadelta>(AdadeltaOptions{.learning_rate = 1.0, .epsilon = kEps, .rho = kB2}), kNothing,
       Each([](double& p, double g, Element& state, int) {
         auto& [mean_g, mean_x, unused] = state;
         mean_g = kBeta2 * mean_g + (1 - kBeta2) * g * g;
         const double delta = -std::sqrt(mean_x + kEpsilon) / std::sqrt(mean_g + kEpsilon) * g;
         mean_x = kBeta2 * mean_x + (1 - kBeta2) * delta * delta;
         p += delta;
       })},
      {"RmsProp", Make<optimizer::RmsProp>(rmsprop), kNothing, RmsProp(0, false)},
      {"RmsPropWithMomentum",
       MakeWith<optimizer::RmsProp>(rmsprop, [](auto& options) { options.momentum = 0.5f; }),
       kNothing, RmsProp(0.5, false)},
      {"RmsPropCentered",
       MakeWith<optimizer::RmsProp>(rmsprop,
                                    [](auto& options) {
                                      options.momentum = 0.5f;
                                      options.centered = true;
                                    }),
       kNothing, RmsProp(0.5, true)},
      {"Ftrl",
       Make<optimizer::Ftrl>(FtrlOptions{.learning_rate = kRate, .l1 = 0.0625f, .l2 = 0.125f}),
       kNothing, Ftrl(0.0625, 0.125, -0.5)},
      {"FtrlWithAnotherPower",
       Make<optimizer::Ftrl>(FtrlOptions{.learning_rate = kRate, .lr_power = -0.75f}), kNothing,
       Ftrl(0, 0, -0.75)},
  };
}

// ---- The two loops.

Net ReferenceAfterTraining(const Row& row) {
  Net net = MakeNet();
  for (int step = 1; step <= kSteps; ++step) {
    ComputeGradients(BatchOf(step), &net);
    row.form(net);
    for (Parameter& parameter : net) row.update(parameter, step);
  }
  return net;
}

ParamAttr AttrOf(const Parameter& parameter) {
  return {.name = parameter.name, .initializer = initializer::FromArray(parameter.value)};
}

Net SkiffAfterTraining(const Row& row, const CompileOptions& options) {
  Net net = MakeNet();
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {kRows, kInputs}, DType::kFloat64);
  const Variable y = layers::Data("y", {kRows, 1}, DType::kFloat64);
  const Variable hidden = layers::Fc(
      x, kHidden, {.param_attr = AttrOf(net[0]), .bias_attr = AttrOf(net[1]), .act = "tanh"});
  const Variable prediction =
      layers::Fc(hidden, 1, {.param_attr = AttrOf(net[2]), .bias_attr = AttrOf(net[3])});
  row.optimizer->Minimize(layers::Mean(layers::SquareErrorCost(prediction, y)));
  Executor exe(Place::Cpu());
  exe.Run(startup);
  CompiledProgram program = exe.Compile(main, options);
  for (int step = 1; step <= kSteps; ++step) {
    const Batch batch = BatchOf(step);
    program.Run({{"x", Tensor::FromValues<double>({kRows, kInputs}, batch.x)},
                 {"y", Tensor::FromValues<double>({kRows, 1}, batch.y)}},
                {});
  }
  for (Parameter& parameter : net) {
    parameter.value = CopyToCpu(exe.scope().Get(parameter.name)).ToVector<double>();
  }
  return net;
}

void ExpectEqualButForRounding(const Net& found, const Net& expected) {
  for (size_t k = 0; k < expected.size(); ++k) {
    double largest = 0;
    for (const double value : expected[k].value) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < expected[k].value.size(); ++i) {
      EXPECT_NEAR(found[k].value[i], expected[k].value[i], 1e-12 * largest)
          << expected[k].name << '[' << i << ']';
    }
  }
}

class OptimizerSteps : public testing::TestWithParam<Row> {};

TEST_P(OptimizerSteps, AreThoseOfTheFormulas) {
  const Net expected = ReferenceAfterTraining(GetParam());
  const std::vector<std::pair<std::string, CompileOptions>> passes = {
      {"no passes", {}},
      {"merge", {.passes = {.also = {"merge_optimizer"}}}},
      {"fuse", {.passes = {.also = {"fuse_optimizer"}}}},
      {"flatten", {.passes = {.also = {"flatten_parameters"}}}},
      {"fuse and flatten", {.passes = {.also = {"fuse_optimizer", "flatten_parameters"}}}}};
  for (const auto& [name, options] : passes) {
    SCOPED_TRACE(name);
    ExpectEqualButForRounding(SkiffAfterTraining(GetParam(), options), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerSteps, testing::ValuesIn(Rows()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace skiff
