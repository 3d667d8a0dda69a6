// ModelAverage and ExponentialMovingAverage against means over the very values that the parameters
// had, in float64.

#include "framework/training/average.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/exponential_moving_average.h"
#include "framework/builder/optimizer/model_average.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/io/checkpoint.h"
#include "framework/io/parameters.h"
#include "framework/io/weights_hash.h"
#include "framework/transpiler/pass.h"
#include "memory/allocator.h"
#include "memory/places.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using optimizer::ExponentialMovingAverage;
using optimizer::ModelAverage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The values that a window holds, as the definition of ModelAverage says, without any sums.
class Window {
 public:
  explicit Window(const optimizer::ModelAverageOptions& options) : options_(options) {}

  void Add(double value) {
    now_.push_back(value);
    ++updates_;
    const auto share = static_cast<int64_t>(
        std::floor(static_cast<double>(updates_) * options_.average_window_rate));
    const auto count = static_cast<int64_t>(now_.size());
    const int64_t full = std::min(options_.max_average_window, share);
    if (count >= options_.min_average_window && count >= full) {
      before_ = std::exchange(now_, {});
    }
  }

  double Mean() const {
    double sum = 0;
    for (const auto* values : {&before_, &now_}) {
      for (const double value : *values) sum += value;
    }
    return sum / static_cast<double>(before_.size() + now_.size());
  }

 private:
  optimizer::ModelAverageOptions options_;
  std::vector<double> before_;
  std::vector<double> now_;
  int64_t updates_ = 0;
};

// loss = Σ x · w of a float64 parameter w, in steps of another x each.
class ParameterAverageTest : public testing::Test {
 protected:
  ParameterAverageTest() {
    const Variable x = layers::Data("x", {1, 2}, DType::kFloat64);
    const Variable b = layers::Data("y", {1, 1}, DType::kFloat64);
    const Variable product = layers::Fc(
        x, 1,
        {.param_attr = {.name = "w",
                        .initializer = initializer::FromArray(std::vector<double>{1.0, -2.0})},
         .bias_attr = ParamAttr{.name = "b", .do_model_average = false}});
    optimizer::Momentum({.learning_rate = 0.25f}).Minimize(layers::ReduceSum(product * b));
  }

  void Start() {
    executor_ = std::make_unique<Executor>(Place::Cpu());
    executor_->Run(startup_);
    step_.emplace(executor_->Compile(main_));
    steps_ = 0;
  }
  void Step() {
    const double n = ++steps_;
    step_->Run({{"x", Tensor::FromValues<double>({1, 2}, {std::sin(n), std::cos(3 * n)})},
                {"y", Tensor::FromValues<double>({1, 1}, {1.0 + 1.0 / n})}},
               {});
  }
  double W(size_t i) const { return executor_->scope().Get("w").values<double>()[i]; }
  std::string Hash() const { return WeightsHash(executor_->scope(), PersistableNames(main_)); }

  // After each step, the applied value must be the mean that `mean` gives of the values so far.
  void ExpectAverages(const optimizer::ParameterAverage& average, int steps,
                      const std::function<double(const std::vector<double>&)>& mean) {
    Start();
    std::vector<double> values[2];
    for (int n = 1; n <= steps; ++n) {
      Step();
      for (size_t i = 0; i < 2; ++i) values[i].push_back(W(i));
      const std::string raw = Hash();
      {
        const ReplacedValues averaged = training::ApplyAverage(average, executor_.get());
        for (size_t i = 0; i < 2; ++i) {
          const double expected = mean(values[i]);
          ASSERT_NEAR(W(i), expected, 1e-13 * std::max(1.0, std::abs(expected))) << "step " << n;
        }
      }
      ASSERT_EQ(Hash(), raw);
    }
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  std::unique_ptr<Executor> executor_;
  std::optional<CompiledProgram> step_;
  double steps_ = 0;
};

// Windows that end when sum_1 is full, before that and after it, of constant and of growing length.
TEST_F(ParameterAverageTest, ModelAverageIsTheMeanOfItsWindow) {
  for (const optimizer::ModelAverageOptions& options :
       {optimizer::ModelAverageOptions{.average_window_rate = 0.5f,
       .min_average_window = 2,
       .max_average_window = 9,
       .max_num_accumulates = 7},
        {.average_window_rate = 1.0f,
        .min_average_window = 1,
        .max_average_window = 7,
        .max_num_accumulates = 7},
        {.average_window_rate = 1.0f,
        .min_average_window = 20,
        .max_average_window = 20,
        .max_num_accumulates = 3},
        {.average_window_rate = 0.25f,
        .min_average_window = 3,
        .max_average_window = 1000,
        .max_num_accumulates = 1},
        {.average_window_rate = 0.0f, .min_average_window = 1, .max_average_window = 1}}) {
    SCOPED_TRACE(StrCat(options.average_window_rate, " ", options.max_average_window));
    const auto main = main_.Clone();
    const auto startup = startup_.Clone();
    const ProgramGuard guard(main.get(), startup.get());
    const ModelAverage average(options);
    EXPECT_THAT(average.variables(), ElementsAre("w"));
    executor_ = std::make_unique<Executor>(Place::Cpu());
    executor_->Run(*startup);
    step_.emplace(executor_->Compile(*main));
    steps_ = 0;
    Window windows[2] = {Window(options), Window(options)};
    for (int n = 1; n <= 60; ++n) {
      Step();
      const std::string raw = WeightsHash(executor_->scope(), PersistableNames(*main));
      for (size_t i = 0; i < 2; ++i) windows[i].Add(W(i));
      {
        const ReplacedValues averaged = training::ApplyAverage(average, executor_.get());
        for (size_t i = 0; i < 2; ++i) ASSERT_NEAR(W(i), windows[i].Mean(), 1e-12) << "step " << n;
      }
      ASSERT_EQ(WeightsHash(executor_->scope(), PersistableNames(*main)), raw);
    }
  }
}

TEST_F(ParameterAverageTest, ExponentialMovingAverageWeighsAllValues) {
  constexpr float kDecay = 0.875f;
  const ExponentialMovingAverage average({.decay = kDecay});
  ExpectAverages(average, 40, [](const std::vector<double>& values) {
    double sum = 0, weights = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double weight = std::pow(kDecay, static_cast<double>(values.size() - 1 - i));
      sum += weight * values[i];
      weights += weight;
    }
    return sum / weights;
  });
}

// Where the decay changes, a value counts for (1 - d) of its own step times all later decays.
TEST_F(ParameterAverageTest, AScheduledDecayKeepsTheWeightsExact) {
  const auto steps = CreatePersistable("steps", {1}, DType::kInt64, 0, {});
  layers::Increment(steps);
  const ExponentialMovingAverage average({.decay = 0.75f, .thres_steps = steps});
  ExpectAverages(average, 40, [](const std::vector<double>& values) {
    double sum = 0, weights = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double t = static_cast<double>(i) + 1;
      const double decay = std::min(0.75, (1 + t) / (10 + t));
      sum = decay * sum + (1 - decay) * values[i];
      weights = decay * weights + (1 - decay);
    }
    return sum / weights;
  });
}

TEST_F(ParameterAverageTest, StatesHaveFluidsNames) {
  const ModelAverage average({.min_average_window = 1});
  const ExponentialMovingAverage moving;
  for (const char* name :
       {"w_sum_1_0", "w_sum_2_0", "w_sum_3_0", "w_num_accumulates_0", "w_old_num_accumulates_0",
        "w_num_updates_0", "w_ema_0", "w_ema_decay_product_0"}) {
    ASSERT_NE(main_.root()->FindLocalVar(name), nullptr) << name;
    EXPECT_TRUE(main_.root()->GetVar(name)->persistable) << name;
    EXPECT_NE(startup_.root()->FindLocalVar(name), nullptr) << name;
  }
  // PaddlePaddle has an attribute less.
  EXPECT_FALSE(main_.root()->ops()[main_.root()->ops().size() - 2]->HasAttr("max_num_accumulates"));
  const auto test = main_.CloneForTest();
  for (const auto& op : test->root()->ops()) {
    EXPECT_NE(op->type, "average_accumulates");
    EXPECT_NE(op->type, "exponential_moving_average");
  }
}

TEST_F(ParameterAverageTest, ChoosesItsVariables) {
  EXPECT_THAT(ModelAverage({.averaged = {.parameters = {"b"}}}).variables(), ElementsAre("b"));
  EXPECT_THAT(ExponentialMovingAverage().variables(), ElementsAre("w"));
  const std::string expected =
      "model_average: \"x\" is no parameter that the program changes; average after Minimize";
  EXPECT_THAT(InvalidArgumentText([] { ModelAverage({.averaged = {.parameters = {"x"}}}); }),
              HasSubstr(expected));
}

TEST_F(ParameterAverageTest, RefusesOptionsOutOfRange) {
  const auto expect = [](const optimizer::ModelAverageOptions& options, const std::string& part) {
    EXPECT_THAT(InvalidArgumentText([&] { const ModelAverage average(options); }), HasSubstr(part));
  };
  expect({.average_window_rate = -0.5f}, "average_window_rate = -0.5, expected one in [0, 1]");
  expect({.average_window_rate = NAN}, "average_window_rate = nan");
  expect({.min_average_window = 0}, "min_average_window = 0, expected at least 1");
  expect({.min_average_window = 9, .max_average_window = 8},
         "min_average_window = 9 is above max_average_window = 8");
  expect({.max_num_accumulates = 0}, "max_num_accumulates = 0, expected at least 1");
  const auto expect_moving = [](const optimizer::ExponentialMovingAverageOptions& options,
                                const std::string& part) {
    EXPECT_THAT(InvalidArgumentText([&] { const ExponentialMovingAverage average(options); }),
                HasSubstr(part));
  };
  expect_moving({.decay = 1.0f}, "decay = 1, expected one in [0, 1)");
  expect_moving({.decay = -0.5f}, "decay = -0.5");
  expect_moving({.thres_steps = layers::FillConstant({1}, DType::kFloat32, 0)},
                "is float32 [1], expected int64 [1]");
}

TEST_F(ParameterAverageTest, IsAppliedOnceAtATimeAndOnlyAfterAStep) {
  const ModelAverage average({.min_average_window = 2, .max_average_window = 4});
  const ExponentialMovingAverage moving;
  Start();
  const auto code_of_apply = [&](const optimizer::ParameterAverage& applied) {
    try {
      training::ApplyAverage(applied, executor_.get());
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kIo;
  };
  const std::string start = Hash();
  EXPECT_EQ(code_of_apply(average), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(code_of_apply(moving), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(Hash(), start);
  for (int i = 0; i < 3; ++i) Step();
  const std::string raw = Hash();
  const uint64_t generation = executor_->scope().generation();
  {
    ReplacedValues averaged = training::ApplyAverage(average, executor_.get());
    const double mean = W(0);
    EXPECT_EQ(code_of_apply(average), ErrorCode::kFailedPrecondition);
    EXPECT_EQ(code_of_apply(moving), ErrorCode::kFailedPrecondition);
    EXPECT_EQ(W(0), mean);
    EXPECT_NE(Hash(), raw);
    EXPECT_THROW(Step(), Error);
    averaged.Restore();
    EXPECT_EQ(Hash(), raw);
    averaged.Restore();
    EXPECT_EQ(Hash(), raw);
  }
  EXPECT_EQ(Hash(), raw);
  EXPECT_EQ(executor_->scope().generation(), generation);
  Step();
  EXPECT_NE(Hash(), raw);
}

// Each plan has an arena.
int64_t PlansSoFar() {
  return AllocatorOf(Place::Cpu()).statistics().of(MemoryTag::kArena).allocations;
}

TEST_F(ParameterAverageTest, ACompiledAverageIsPlannedOnce) {
  const ModelAverage average({.min_average_window = 2, .max_average_window = 4});
  Start();
  training::CompiledAverage compiled(&average, executor_.get());
  EXPECT_EQ(ErrorOf([&] { compiled.Apply(); }).code(), ErrorCode::kFailedPrecondition);
  Step();
  compiled.Apply();
  const auto expect_that_of_apply = [&] {
    double mean = 0;
    {
      const ReplacedValues averaged = compiled.Apply();
      mean = W(0);
    }
    const ReplacedValues averaged = training::ApplyAverage(average, executor_.get());
    EXPECT_EQ(mean, W(0));
  };
  for (int i = 0; i < 6; ++i) {
    Step();
    const std::string raw = Hash();
    const int64_t plans = PlansSoFar();
    compiled.Apply();
    EXPECT_EQ(PlansSoFar(), plans);
    expect_that_of_apply();
    EXPECT_EQ(PlansSoFar(), plans + 1);
    EXPECT_EQ(Hash(), raw);
  }
  // As when a checkpoint is loaded.
  Scope& scope = executor_->scope();
  for (const std::string& name : PersistableNames(main_)) {
    scope.Set(name, CopyToCpu(scope.Get(name)));
  }
  expect_that_of_apply();
}

TEST_F(ParameterAverageTest, EachExecutorHasACompiledAverageOfItsOwn) {
  const ExponentialMovingAverage average({.decay = 0.5f});
  Start();
  Executor other(Place::Cpu());
  other.Run(startup_);
  training::CompiledAverage compiled(&average, executor_.get());
  training::CompiledAverage compiled_for_other(&average, &other);
  Step();
  const double w = W(0);
  Step();
  EXPECT_EQ(ErrorOf([&] { compiled_for_other.Apply(); }).code(), ErrorCode::kFailedPrecondition);
  const std::string raw_of_other = WeightsHash(other.scope(), PersistableNames(main_));
  const double last = W(0);
  const ReplacedValues averaged = compiled.Apply();
  EXPECT_NEAR(W(0), (w + 2 * last) / 3, 1e-13);
  EXPECT_FALSE(other.scope().has_replaced_values());
  EXPECT_EQ(WeightsHash(other.scope(), PersistableNames(main_)), raw_of_other);
}

// In the middle of a window, and with averages applied in between: the same weights, states and
// averages as without.
TEST_F(ParameterAverageTest, ACheckpointHoldsRawWeightsAndTheStatesOfAverages) {
  const ModelAverage average({.average_window_rate = 0.5f,
                              .min_average_window = 2,
                              .max_average_window = 6,
                              .max_num_accumulates = 5});
  const ExponentialMovingAverage moving({.decay = 0.75f});
  const TempDirectory directory;
  const auto means = [&] {
    std::vector<double> found;
    for (const auto* applied : {static_cast<const optimizer::ParameterAverage*>(&average),
                                static_cast<const optimizer::ParameterAverage*>(&moving)}) {
      const ReplacedValues averaged = training::ApplyAverage(*applied, executor_.get());
      found.push_back(W(0));
    }
    return found;
  };
  Start();
  for (int i = 0; i < 12; ++i) Step();
  const std::string unbroken = Hash();
  const std::vector<double> unbroken_means = means();

  Start();
  for (int i = 0; i < 7; ++i) Step();
  const std::string raw = Hash();
  SaveCheckpoint(directory.path(), main_, executor_->scope(), 7, {});
  std::unique_ptr<Executor> killed;
  {
    const ReplacedValues averaged = training::ApplyAverage(average, executor_.get());
    const Error refused =
        ErrorOf([&] { SaveCheckpoint(directory.path(), main_, executor_->scope(), 7, {}); });
    EXPECT_EQ(refused.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(refused.what(), HasSubstr("\"w\" holds a replaced value"));
    EXPECT_THAT(NamesIn(directory.path()), ElementsAre("save-000001-step-7"));
    EXPECT_THROW(LoadLatestCheckpoint(directory.path(), main_, &executor_->scope()), Error);
    // As if the process was killed here: a new one only has the files.
    killed = std::move(executor_);
    Start();
    LoadLatestCheckpoint(directory.path(), main_, &executor_->scope());
    EXPECT_EQ(Hash(), raw);
  }
  steps_ = 7;
  for (int i = 7; i < 12; ++i) Step();
  EXPECT_EQ(Hash(), unbroken);
  EXPECT_EQ(means(), unbroken_means);
}

// One op a kind: merge_optimizer takes the ops of an average, too.
TEST_F(ParameterAverageTest, MergedOpsGiveTheSameBits) {
  const ModelAverage average({.averaged = {.parameters = {"b", "w"}}, .max_num_accumulates = 3});
  const auto train = [&](bool merged) {
    Start();
    if (merged) step_.emplace(executor_->Compile(main_, {.passes = {.also = {"merge_optimizer"}}}));
    for (int i = 0; i < 10; ++i) Step();
    return Hash();
  };
  const std::string plain = train(false);
  EXPECT_EQ(train(true), plain);
  const auto count = std::ranges::count_if(step_->program().root()->ops(), [](const auto& op) {
    return op->type == "average_accumulates";
  });
  EXPECT_EQ(count, 1);
}

TEST(ParameterAverage, TakesRunningStatisticsAlongIfTheyAreWanted) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 3});
  const Variable normal = layers::BatchNorm(x, {.param_attr = ParamAttr{.name = "scale"},
                                                .bias_attr = ParamAttr{.name = "bias"},
                                                .moving_mean_name = "mean",
                                                .moving_variance_name = "variance"});
  const Variable loss = layers::Mean(normal);
  EXPECT_THAT(InvalidArgumentText([] { const ModelAverage average; }),
              HasSubstr("the program changes no parameter that is to be averaged"));
  optimizer::Sgd({.learning_rate = 0.1f}).Minimize(loss);
  EXPECT_THAT(ModelAverage({.averaged = {.batch_norm_statistics = false}}).variables(),
              ElementsAre("bias", "scale"));
  const ModelAverage average;
  EXPECT_THAT(average.variables(), ElementsAre("bias", "mean", "scale", "variance"));

  Executor executor(Place::Cpu());
  executor.Run(startup);
  CompiledProgram step = executor.Compile(main);
  std::vector<double> means;
  const auto mean = [&] { return executor.scope().Get("mean").values<float>()[1]; };
  for (int i = 0; i < 5; ++i) {
    const auto value = static_cast<float>(i * i);
    step.Run({{"x", Tensor::FromValues<float>({2, 3}, {value, 1 + value, 2, 3, 4, 5})}}, {});
    means.push_back(mean());
  }
  const ReplacedValues averaged = training::ApplyAverage(average, &executor);
  double sum = 0;
  for (const double value : means) sum += value;
  EXPECT_NEAR(mean(), sum / 5, 1e-6);
}

TEST(ParameterAverage, IsWhatABoundEvaluationSees) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 2});
  const Variable y = layers::Fc(x, 1, {.param_attr = {.name = "w"}, .bias_attr = false});
  const auto test = main.CloneForTest();
  optimizer::Sgd({.learning_rate = 0.5f}).Minimize(layers::Mean(y));
  const ExponentialMovingAverage average({.decay = 0.5f});
  Executor executor(Place::Cpu());
  executor.Run(startup);
  const Tensor batch = Tensor::FromValues<float>({1, 2}, {1, 2});
  BoundProgram evaluation = executor.Compile(*test).Bind({{"x", batch}}, {y});
  CompiledProgram step = executor.Compile(main);
  for (int i = 0; i < 4; ++i) step.Run({{"x", batch}}, {});
  const auto output = [&] {
    evaluation.Step();
    return evaluation.fetch(0).Item<float>();
  };
  const float raw = output();
  {
    const ReplacedValues averaged = training::ApplyAverage(average, &executor);
    const auto w = executor.scope().Get("w").ToVector<float>();
    EXPECT_FLOAT_EQ(output(), w[0] + 2 * w[1]);
    EXPECT_NE(output(), raw);
  }
  EXPECT_EQ(output(), raw);
}

// Of batch norms that no pass folds into a convolution. In test mode they change nothing.
TEST(ParameterAverage, IsEvaluatedWithBatchNormsOfAnyNetwork) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 2, 3, 3});
  const Variable depthwise = layers::BatchNorm(
      layers::Conv2d(x, {.filters = 2, .kernel = 2, .groups = 2, .depthwise = true}));
  const Variable y = layers::BatchNorm(layers::Fc(depthwise, 2, {.num_flatten_dims = 1}),
                                       {.moving_mean_name = "mean", .moving_variance_name = "var"});
  const auto test = main.CloneForTest();
  optimizer::Sgd({.learning_rate = 0.5f}).Minimize(layers::Mean(layers::Square(y)));
  const ExponentialMovingAverage average({.decay = 0.5f});
  Executor executor(Place::Cpu());
  executor.Run(startup);
  std::vector<float> values(2 * 18);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  const Tensor batch = Tensor::FromValues<float>({2, 2, 3, 3}, values);
  CompiledProgram step = executor.Compile(main);
  for (int i = 0; i < 3; ++i) step.Run({{"x", batch}}, {});
  const auto program_of = [&](const Program& program, const char* passes) {
    return executor.Compile(program, {.passes = ParsePasses(passes)});
  };
  for (const char* passes : {"", "-fold_batch_norm", "-memory_reuse"}) {
    SCOPED_TRACE(passes);
    CompiledProgram evaluation = program_of(*test, passes);
    const auto output = [&] { return evaluation.Run({{"x", batch}}, {y})[0].ToVector<float>(); };
    const std::vector<float> raw = output();
    const std::vector<float> mean = executor.scope().Get("mean").ToVector<float>();
    {
      const ReplacedValues averaged = training::ApplyAverage(average, &executor);
      EXPECT_NE(executor.scope().Get("mean").ToVector<float>(), mean);
      EXPECT_NE(output(), raw);
      // One that would update the averages is still refused.
      const auto updating = test->Clone();
      for (const auto& op : updating->root()->ops()) {
        if (op->type == "batch_norm") op->SetAttr("trainable_statistics", true);
      }
      CompiledProgram refused = program_of(*updating, passes);
      EXPECT_THAT(ErrorText([&] {
                    refused.Run({{"x", batch}}, {y});
                  }),
                  HasSubstr("a run that writes a variable: "));
    }
    EXPECT_EQ(output(), raw);
  }
}

TEST(ParameterAverage, OnHostChangesNoBitOnTheCpu) {
  std::vector<std::vector<float>> applied;
  for (const bool on_host : {false, true}) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    const Variable x = layers::Data("x", {-1, 2});
    const Variable y = layers::Fc(x, 1, {.param_attr = {.name = "w"}, .bias_attr = false});
    optimizer::Sgd({.learning_rate = 0.5f}).Minimize(layers::Mean(y));
    const ExponentialMovingAverage moving({.decay = 0.5f, .on_host = on_host});
    const ModelAverage window({.min_average_window = 2, .on_host = on_host});
    for (const auto& op : main.root()->ops()) {
      const bool is_average =
          op->type == "exponential_moving_average" || op->type == "average_accumulates";
      // PaddlePaddle doesn't know the attribute.
      EXPECT_EQ(op->HasAttr("on_host"), is_average && on_host) << op->type;
    }
    main.seed = startup.seed = 1;
    Executor executor(Place::Cpu());
    executor.Run(startup);
    CompiledProgram step = executor.Compile(main);
    const Tensor batch = Tensor::FromValues<float>({1, 2}, {1, 2});
    for (int i = 0; i < 5; ++i) step.Run({{"x", batch}}, {});
    for (const optimizer::ParameterAverage* average :
         std::initializer_list<const optimizer::ParameterAverage*>{&moving, &window}) {
      const ReplacedValues averaged = training::ApplyAverage(*average, &executor);
      applied.push_back(executor.scope().Get("w").ToVector<float>());
    }
  }
  EXPECT_EQ(applied[0], applied[2]);
  EXPECT_EQ(applied[1], applied[3]);
}

}  // namespace
}  // namespace skiff
