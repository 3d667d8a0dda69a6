#include "framework/builder/gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/update_condition.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/plan/plan.h"
#include "framework/precision/loss_scaling.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// loss = mean(tanh(x · w)²) in float64.
class GradientsTest : public testing::Test {
 protected:
  GradientsTest() {
    x_ = layers::Data("x", {2, 3}, DType::kFloat64);
    w_ = layers::CreateParameter({3, 2}, DType::kFloat64, {.name = "w"});
    hidden_ = layers::Tanh(layers::MatMul(x_, w_));
    loss_ = layers::Mean(layers::Square(hidden_));
  }

  static Tensor X() { return Tensor::FromValues<double>({2, 3}, {0.3, -1, 0.5, 2, 0.1, -0.7}); }
  static Tensor W() { return Tensor::FromValues<double>({3, 2}, {1, 0.5, -0.2, 0.8, 0.6, -1}); }

  // The values of `fetches` for x and w.
  std::vector<Tensor> Run(const FetchList& fetches, const Tensor& x, const Tensor& w) {
    Executor exe(Place::Cpu());
    exe.Run(startup_);
    exe.scope().Assign("w", w);
    return exe.Run(main_, {{"x", x}}, fetches);
  }

  // The slopes of the loss by the elements of `at`, which `loss` is called with.
  static std::vector<double> Slopes(Tensor at, const std::function<double()>& loss) {
    constexpr double kStep = 1e-5;
    std::vector<double> slopes;
    for (double& element : at.values<double>()) {
      const double before = element;
      element = before + kStep;
      const double above = loss();
      element = before - kStep;
      slopes.push_back((above - loss()) / (2 * kStep));
      element = before;
    }
    return slopes;
  }

  static void ExpectNear(const Tensor& found, const std::vector<double>& expected) {
    const std::vector<double> values = found.ToVector<double>();
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-9) << i;
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  Variable x_, w_, hidden_, loss_;
};

// x, a feed, is marked stop_gradient, as feeds are.
TEST_F(GradientsTest, AreTheSlopesByFeedsParametersAndWhatOpsCompute) {
  const std::vector<Variable> gradients = Gradients(loss_, {w_, x_, hidden_});
  ASSERT_EQ(gradients.size(), 3u);
  EXPECT_EQ(gradients[1].dims(), (std::vector<int64_t>{2, 3}));
  const Tensor x = X();
  const Tensor w = W();
  const auto loss = [&] { return Run({loss_}, x, w)[0].Item<double>(); };
  const std::vector<Tensor> found = Run({gradients[0], gradients[1], gradients[2], hidden_}, x, w);
  ExpectNear(found[0], Slopes(w, loss));
  ExpectNear(found[1], Slopes(x, loss));
  std::vector<double> by_hidden;
  for (const double value : found[3].values<double>()) by_hidden.push_back(2 * value / 4);
  ExpectNear(found[2], by_hidden);
}

// Nothing is computed that nobody asks for.
TEST_F(GradientsTest, StopWhereTheyAreWanted) {
  Gradients(loss_, {hidden_});
  std::vector<std::string> types;
  for (const auto& op : main_.root()->ops()) types.push_back(op->type);
  EXPECT_THAT(types, ElementsAre("matmul_v2", "tanh", "square", "mean", "fill_constant",
                                 "mean_grad", "square_grad"));
}

TEST_F(GradientsTest, LeaveOutWhatIsExcluded) {
  const Variable doubled = hidden_ * 2.0;
  const Variable loss = layers::Mean(layers::ElementwiseMul(hidden_, doubled));
  const std::vector<Variable> gradients = Gradients(loss, {hidden_}, {.no_grad = {doubled}});
  const std::vector<Tensor> found = Run({gradients[0], doubled}, X(), W());
  std::vector<double> expected;
  for (const double value : found[1].values<double>()) expected.push_back(value / 4);
  ExpectNear(found[0], expected);
}

TEST_F(GradientsTest, OfTwoLossesHaveTheirOwnNames) {
  const Variable other = layers::Mean(hidden_);
  const Variable first = Gradients(loss_, {w_})[0];
  const Variable second = Gradients(other, {w_})[0];
  EXPECT_NE(first.name(), second.name());
  const Tensor w = W();
  const std::vector<Tensor> found = Run({first, second}, X(), w);
  ExpectNear(found[0], Slopes(w, [&] { return Run({loss_}, X(), w)[0].Item<double>(); }));
  ExpectNear(found[1], Slopes(w, [&] { return Run({other}, X(), w)[0].Item<double>(); }));
}

TEST_F(GradientsTest, RefuseWhatHasNone) {
  const Variable unused = layers::Data("unused", {2});
  const Variable ints = layers::Data("ints", {2}, DType::kInt64);
  const Variable counter = layers::FillConstant({1}, DType::kFloat64, 0.0);
  layers::Increment(counter);
  const Variable with_counter = loss_ + counter;
  const std::vector<std::pair<std::function<void()>, std::string>> refused = {
      {[&] { Gradients(loss_, {}); }, "there are no variables to differentiate with respect to"},
      {[&] { Gradients(loss_, {Variable()}); }, "an input is an undefined Variable"},
      {[&] {
         Gradients(loss_, {w_, unused});
       },
       "does not depend on the input \"unused\""},
      {[&] { Gradients(loss_, {ints}); },
       "the input \"ints\" is a lod_tensor of int64, expected a tensor of floats"},
      {[&] { Gradients(layers::ReduceSum(with_counter), {counter}); },
       "2 ops write the input \"" + counter.name() + "\", expected one at most"},
      {[&] { Gradients(hidden_, {w_}); }, "expected one element"}};
  for (const auto& [call, message] : refused) {
    EXPECT_THAT(InvalidArgumentText(call), HasSubstr(message));
  }
  const size_t ops = main_.root()->ops().size();
  const Variable gradient = Gradients(loss_, {w_})[0];
  // A penalty on gradients is refused, not left out.
  EXPECT_THAT(ErrorText([&] { Gradients(loss_ + layers::Mean(layers::Square(gradient)), {w_}); }),
              HasSubstr("the gradient of \"w@GRAD\" is needed, but the op has none"));
  EXPECT_GT(main_.root()->ops().size(), ops);
}

// What is computed from gradients goes with them.
TEST_F(GradientsTest, AreNotInClonesForEvaluation) {
  const size_t ops = main_.root()->ops().size();
  const Variable gradient = Gradients(loss_, {w_})[0];
  const Variable norm = layers::Sqrt(layers::ReduceSum(layers::Square(gradient)));
  EXPECT_NE(norm.name(), "");
  EXPECT_EQ(main_.CloneForTest()->root()->ops().size(), ops);
}

TEST_F(GradientsTest, DetachStopsThemAndLeavesTheVariable) {
  const Variable detached = layers::Detach(hidden_);
  EXPECT_TRUE(detached.var().stop_gradient);
  EXPECT_FALSE(hidden_.var().stop_gradient);
  const Variable loss = layers::Mean(layers::ElementwiseMul(hidden_, detached));
  const Variable gradient = Gradients(loss, {hidden_})[0];
  const std::vector<Tensor> found = Run({gradient, hidden_, detached}, X(), W());
  EXPECT_EQ(found[1].ToVector<double>(), found[2].ToVector<double>());
  std::vector<double> expected;
  for (const double value : found[1].values<double>()) expected.push_back(value / 4);
  ExpectNear(found[0], expected);
}

TEST_F(GradientsTest, DetachCopiesNothing) {
  const Variable detached = layers::Detach(hidden_);
  const Variable loss = layers::Mean(layers::ElementwiseMul(hidden_, detached));
  Executor exe(Place::Cpu());
  exe.Run(startup_);
  CompiledProgram program = exe.Compile(main_);
  const BoundProgram bound = program.Bind({{"x", X()}}, {loss});
  const Plan& plan = bound.plan();
  const auto value_of = [&](const std::string& name) {
    for (const ValueId id : plan.ids()) {
      if (plan[id].name == name) return id;
    }
    ADD_FAILURE() << name;
    return ValueId{};
  };
  EXPECT_EQ(plan.StorageOf(value_of(detached)), plan.StorageOf(value_of(hidden_)));
}

// ---- ApplyGradients

constexpr int64_t kWidth = 4;

// A training of two layers by any means.
class Training {
 public:
  using Train = std::function<void(const Variable& loss)>;

  explicit Training(const Train& train) {
    const ProgramGuard guard(&main_, &startup_);
    main_.seed = startup_.seed = 3;
    const Variable x = layers::Data("x", {-1, kWidth});
    const Variable hidden = layers::Fc(x, kWidth, {.param_attr = {.name = "u"}, .act = "tanh"});
    const Variable y = layers::Fc(hidden, 1, {.param_attr = {.name = "w"}});
    loss_ = layers::Mean(layers::Square(y));
    train(loss_);
    executor_.Run(startup_);
  }

  // Makes a step in which the largest element of x is `largest`.
  void Step(float largest) {
    std::vector<float> x;
    for (int i = 0; i < 3 * kWidth; ++i) {
      x.push_back(largest * std::cos(static_cast<float>(i) * largest));
    }
    x[0] = largest;
    executor_.Run(main_, {{"x", Tensor::FromValues<float>({3, kWidth}, x)}}, {loss_});
  }

  // All variables of the scope, by name, as bytes.
  std::map<std::string, std::string> State() const {
    std::map<std::string, std::string> state;
    for (const std::string& name : executor_.scope().Names()) {
      const Tensor tensor = CopyToCpu(executor_.scope().Get(name));
      state[name] = std::string(static_cast<const char*>(tensor.raw_data()),
                                static_cast<size_t>(tensor.byte_count()));
    }
    return state;
  }
  Scope& scope() { return executor_.scope(); }
  Program& main() { return main_; }

 private:
  Program main_, startup_;
  mutable Executor executor_{Place::Cpu()};
  Variable loss_;
};

std::vector<std::pair<Variable, Variable>> PairsOf(const Variable& loss,
                                                   const GradientsOptions& options = {}) {
  std::vector<Variable> parameters;
  for (const auto& var : loss.block()->vars()) {
    if (var->is_parameter) parameters.emplace_back(loss.block(), var->name);
  }
  const std::vector<Variable> gradients = Gradients(loss, parameters, options);
  std::vector<std::pair<Variable, Variable>> pairs;
  for (size_t i = 0; i < parameters.size(); ++i) pairs.emplace_back(parameters[i], gradients[i]);
  return pairs;
}

// Whatever else Minimize does with gradients, and whatever the programs compute in.
TEST(ApplyGradients, OfTheLossDoesWhatMinimizeDoes) {
  const auto adam = [] {
    return optimizer::Adam({.learning_rate = learning_rate::Piecewise({3}, {0.1f, 0.03f}),
                            .clip = ClipByGlobalNorm(0.5f),
                            .regularization = L2Decay(0.01f)});
  };
  const PrecisionOptions bfloat16 = {.dtype = DType::kBFloat16};
  struct Case {
    GradientMerge merge;
    bool skip = false;
    PrecisionOptions precision = {};
  };
  const std::vector<Case> cases = {{},
                                   {.skip = true},
                                   {.merge = {.steps = 3}},
                                   {.merge = {.steps = 2, .mean = false}, .skip = true},
                                   {.precision = bfloat16}};
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const auto& [merge, skip, precision] = cases[i];
    Training minimized([&](const Variable& loss) {
      adam().Minimize(loss,
                      {.gradient_merge = merge, .skip_non_finite = skip, .precision = precision});
    });
    Training applied([&](const Variable& loss) {
      adam().ApplyGradients(PairsOf(loss, {.precision = precision}),
                            {.gradient_merge = merge, .skip_non_finite = skip});
    });
    for (int step = 0; step < 7; ++step) {
      const float largest = skip && step == 4 ? 1e30f : 0.5f + static_cast<float>(step);
      minimized.Step(largest);
      applied.Step(largest);
    }
    EXPECT_EQ(applied.State(), minimized.State());
  }
}

TEST(ApplyGradients, TakesGradientsThatTheUserChanges) {
  Training minimized(
      [](const Variable& loss) { optimizer::Sgd({.learning_rate = 0.25f}).Minimize(loss); });
  Training applied([](const Variable& loss) {
    std::vector<std::pair<Variable, Variable>> pairs = PairsOf(loss);
    for (auto& [parameter, gradient] : pairs) gradient = gradient * 0.5;
    optimizer::Sgd({.learning_rate = 0.5f}).ApplyGradients(pairs);
  });
  for (Training* training : {&minimized, &applied}) {
    training->Step(1);
    training->Step(2);
  }
  for (const char* name : {"u", "w"}) {
    EXPECT_EQ(applied.State().at(name), minimized.State().at(name)) << name;
  }
}

// In float16, with a loss scale: gradients come unscaled, and an update by infinite ones is
// skipped.
TEST(ApplyGradients, SkipsWhatALossScaleMakesInfinite) {
  Training applied([](const Variable& loss) {
    optimizer::Momentum({.learning_rate = 0.1f, .momentum = 0.9f})
        .ApplyGradients(PairsOf(loss, {.precision = {.dtype = DType::kFloat16,
                                                     .loss_scaling = LossScaling{
                                                         .initial = 1024, .growth_interval = 2}}}));
  });
  Training float32([](const Variable& loss) {
    optimizer::Momentum({.learning_rate = 0.1f, .momentum = 0.9f}).Minimize(loss);
  });
  const auto scale = [&] { return applied.scope().Get(kLossScale).Item<float>(); };
  applied.Step(0.5f);
  float32.Step(0.5f);
  const std::vector<float> masters = applied.scope().Get("w_fp32_master_0").ToVector<float>();
  const std::vector<float> expected = float32.scope().Get("w").ToVector<float>();
  for (size_t i = 0; i < masters.size(); ++i) EXPECT_NEAR(masters[i], expected[i], 2e-3) << i;
  EXPECT_EQ(scale(), 1024);
  applied.Step(0.5f);
  EXPECT_EQ(scale(), 2048);
  const std::map<std::string, std::string> before = applied.State();
  applied.Step(1e30f);
  EXPECT_EQ(scale(), 1024);
  for (const char* name : {"w", "w_fp32_master_0", "w_fp32_master_0_velocity_0", "u"}) {
    EXPECT_EQ(applied.State().at(name), before.at(name)) << name;
  }
  EXPECT_EQ(applied.scope().Get(kSkippedUpdates).Item<int64_t>(), 1);
}

TEST(ApplyGradients, RefusesWhatIsNoPair) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable w = layers::CreateParameter({2, 2}, DType::kFloat32, {.name = "w"});
  const Variable v = layers::CreateParameter({2}, DType::kFloat32, {.name = "v"});
  const Variable x = layers::Data("x", {2, 2});
  const optimizer::Sgd sgd({.learning_rate = 0.1f});
  sgd.Minimize(layers::ReduceSum(v));
  const size_t ops = main.root()->ops().size();
  const std::vector<std::pair<std::vector<std::pair<Variable, Variable>>, std::string>> refused = {
      {{}, "apply_gradients: there are no pairs of a parameter and a gradient"},
      {{{x, x}}, "apply_gradients: \"x\" is no parameter"},
      {{{w, v}}, "the gradient \"v\" of parameter \"w\" is float32 [2], expected float32 [2, 2]"},
      {{{w, x}, {w, x}}, "parameter \"w\" is there twice"},
      {{{v, v}}, "parameter \"v\" is updated by \"sgd\" already"},
      {{{w, Variable()}}, "an input is an undefined Variable"}};
  for (const auto& [pairs, message] : refused) {
    EXPECT_THAT(InvalidArgumentText([&] { sgd.ApplyGradients(pairs); }), HasSubstr(message));
    EXPECT_EQ(main.root()->ops().size(), ops);
  }
}

}  // namespace
}  // namespace skiff
