// Updates that are made once in several runs, or left out: MinimizeOptions::gradient_merge and
// skip_non_finite, with the optimizers' passes on and off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/builder/step_counter.h"
#include "framework/ir/op_role.h"
#include "framework/ir/program.h"
#include "framework/plan/plan.h"
#include "framework/tensor/philox.h"
#include "skiff/skiff.h"
#include "tests/harness/temp_directory.h"
#include "tests/skiff/net_training.h"

namespace skiff {
namespace {

using optimizer::MinimizeOptions;
using optimizer::Optimizer;

// Passes that run only when asked for.
const std::vector<std::string> kNone = {};
const std::vector<std::string> kFlat = {"fuse_optimizer", "flatten_parameters"};

constexpr int64_t kWords = 61;  // more than a test looks up
constexpr int64_t kSteps = 4;   // small batches that make a large one
constexpr int64_t kSmall = 3;   // rows of a small one

// Given the learning rate, which a schedule halves with each update.
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const LearningRate&)>;

std::unique_ptr<Net> MakeNet(const MakeOptimizer& make, const MinimizeOptions& options,
                             int64_t layers = 1) {
  auto net = std::make_unique<Net>();
  const ProgramGuard guard(&net->main, &net->startup);
  const Variable words = layers::Data("words", {-1}, DType::kInt64);
  const Variable x = layers::Data("x", {-1, 6});
  const LearningRate rate = learning_rate::Step({.start = 0.5f, .step_size = 1, .gamma = 0.5f});
  const Variable embedded =
      layers::Embedding(words, {.rows = kWords, .width = 5, .is_sparse = true});
  Variable y = layers::Concat({embedded, x}, 1);
  for (int64_t i = 0; i < layers; ++i) y = layers::Fc(y, 7, {.act = "tanh"});
  const Variable loss = layers::Mean(layers::Square(layers::Fc(y, 2)));
  make(rate)->Minimize(loss, options);
  net->loss = loss.name();
  return net;
}

// Rows [begin, end) of an endless table.
FeedList Rows(int64_t begin, int64_t end) {
  Tensor words({end - begin}, DType::kInt64);
  Tensor x({end - begin, 6}, DType::kFloat32);
  const Philox philox({1, 2, 3});
  for (int64_t row = begin; row < end; ++row) {
    const auto bits = philox.At(static_cast<uint64_t>(row));
    words.data<int64_t>()[row - begin] = bits[0] % kWords;
    for (int64_t i = 0; i < 6; ++i) {
      x.data<float>()[(row - begin) * 6 + i] =
          UnitFloat(philox.At(static_cast<uint64_t>(1000 + row * 6 + i))[1]) - 0.5f;
    }
  }
  return {{"words", words}, {"x", x}};
}

class Training : public NetTraining {
 public:
  using NetTraining::NetTraining;

  // `count` small batches.
  void RunSmall(int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) Run(Rows(i * kSmall, (i + 1) * kSmall));
  }
};

std::vector<std::string> Parameters(const Program& program) {
  std::vector<std::string> names;
  for (const auto& var : program.root()->vars()) {
    if (var->is_parameter) names.push_back(var->name);
  }
  return names;
}

std::string ParametersHash(Training& training) {
  return WeightsHash(training.scope(), Parameters(training.program()));
}

void ExpectNear(Training& a, Training& b) {
  for (const std::string& name : Parameters(a.program())) {
    const std::vector<float> x = a.Floats(name);
    const std::vector<float> y = b.Floats(name);
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 2e-6f) << name << " " << i;
  }
}

struct Spec {
  std::string name;
  MakeOptimizer make;
};

template <class Made, class Options>
Spec SpecOf(const std::string& name, Options options) {
  return {name, [options](const LearningRate& rate) {
            Options all = options;
            all.learning_rate = rate;
            return std::make_unique<Made>(all);
          }};
}

std::vector<Spec> Specs() {
  using namespace optimizer;  // NOLINT(google-build-using-namespace): a table of them
  return {SpecOf<Sgd>("sgd", SgdOptions{}),
          SpecOf<Momentum>("clipped_momentum", MomentumOptions{.clip = ClipByGlobalNorm(0.125f),
                                                               .regularization = L2Decay(0.01f)}),
          SpecOf<Adam>("adam", AdamOptions{.epsilon = 1e-3f}),
          SpecOf<Adamax>("adamax", AdamaxOptions{.epsilon = 1e-3f}),
          SpecOf<Adagrad>("adagrad", AdagradOptions{.epsilon = 1e-1f}),
          // Those that leave rows alone which no batch of a round has looked up.
          SpecOf<Adam>("lazy_adam", AdamOptions{.epsilon = 1e-3f, .lazy_mode = true}),
          SpecOf<Adam>(
              "clipped_lazy_adam",
              AdamOptions{.epsilon = 1e-3f, .lazy_mode = true, .clip = ClipByGlobalNorm(0.125f)}),
          SpecOf<AdamW>("lazy_adamw", AdamWOptions{.epsilon = 1e-3f, .lazy_mode = true}),
          SpecOf<Ftrl>("ftrl", FtrlOptions{.l1 = 0.001f}),
          SpecOf<Ftrl>("clipped_ftrl", FtrlOptions{.l1 = 0.001f, .clip = ClipByGlobalNorm(0.125f)}),
          SpecOf<Sgd>("sgd_clipped_by_value", SgdOptions{.clip = ClipByValue(0.01f)})};
}

Spec SpecNamed(const std::string& name) {
  for (const Spec& spec : Specs()) {
    if (spec.name == name) return spec;
  }
  ADD_FAILURE() << name;
  return {};
}

class GradientMergeOf : public ::testing::TestWithParam<Spec> {
 protected:
  static std::unique_ptr<Net> Make(const GradientMerge& merge) {
    return MakeNet(GetParam().make, {.gradient_merge = merge});
  }
};

TEST_P(GradientMergeOf, MeansOfSmallBatchesTrainAsLargeOnes) {
  const std::unique_ptr<Net> small = Make({.steps = kSteps});
  const std::unique_ptr<Net> large = Make({});
  Training merged(*small);
  Training whole(*large);
  for (int64_t round = 0; round < 3; ++round) {
    merged.RunSmall(round * kSteps, kSteps);
    whole.Run(Rows(round * kSteps * kSmall, (round + 1) * kSteps * kSmall));
    ExpectNear(merged, whole);
  }
  EXPECT_EQ(merged.scope().Get(kStepCounter).Item<int64_t>(), 2);
}

TEST_P(GradientMergeOf, UpdatesInTheLastRunOfARoundOnly) {
  const std::unique_ptr<Net> net = Make({.steps = kSteps});
  Training training(*net);
  for (int64_t round = 0; round < 2; ++round) {
    const std::string before = ParametersHash(training);
    training.RunSmall(round * kSteps, kSteps - 1);
    EXPECT_EQ(ParametersHash(training), before);
    training.RunSmall(round * kSteps + kSteps - 1, 1);
    EXPECT_NE(ParametersHash(training), before);
  }
}

TEST_P(GradientMergeOf, PassesChangeNoBit) {
  const std::unique_ptr<Net> net = Make({.steps = kSteps});
  Training plain(*net);
  Training fused(*net, {.passes = {.also = kFlat}});
  for (Training* training : {&plain, &fused}) training->RunSmall(0, 2 * kSteps + 1);
  EXPECT_EQ(fused.Hash(), plain.Hash());
}

TEST_P(GradientMergeOf, GoesOnWithinARoundFromACheckpoint) {
  const std::unique_ptr<Net> net = Make({.steps = kSteps});
  Training uninterrupted(*net);
  uninterrupted.RunSmall(0, 2 * kSteps);
  const TempDirectory directory;
  Training before(*net);
  before.RunSmall(0, kSteps + 2);
  SaveCheckpoint(directory.path(), net->main, before.scope(), kSteps + 2, {});
  Training after(*net);
  LoadLatestCheckpoint(directory.path(), net->main, &after.scope());
  after.RunSmall(kSteps + 2, kSteps - 2);
  EXPECT_EQ(after.Hash(), uninterrupted.Hash());
}

INSTANTIATE_TEST_SUITE_P(Optimizers, GradientMergeOf, ::testing::ValuesIn(Specs()),
                         [](const auto& info) { return info.param.name; });

// Without momentum, a sum of gradients is a mean by a larger rate.
TEST(GradientMerge, AddsUpWithoutMean) {
  const auto sgd_by = [](float factor) -> MakeOptimizer {
    return [factor](const LearningRate& rate) {
      return std::make_unique<optimizer::Sgd>(optimizer::SgdOptions{
          .learning_rate = layers::Scale(rate.variable(), {.scale = factor})});
    };
  };
  const auto sum = MakeNet(sgd_by(1), {.gradient_merge = {.steps = kSteps, .mean = false}});
  const auto mean = MakeNet(sgd_by(kSteps), {.gradient_merge = {.steps = kSteps}});
  Training by_sum(*sum);
  Training by_mean(*mean);
  for (Training* training : {&by_sum, &by_mean}) training->RunSmall(0, kSteps);
  ExpectNear(by_sum, by_mean);
}

// Averages move with the parameters only.
TEST(GradientMerge, AveragesUpdatesNotRuns) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 1});
  const Variable y = layers::Fc(x, 1, {.param_attr = {.name = "w"}, .bias_attr = false});
  optimizer::Sgd({.learning_rate = 1.0})
      .Minimize(layers::Mean(y), {.gradient_merge = {.steps = 2, .mean = false}});
  const optimizer::ModelAverage window;
  const optimizer::ExponentialMovingAverage moving({.decay = 0.5f});
  Executor executor(Place::Cpu());
  executor.Run(startup);
  executor.scope().Assign("w", Tensor::FromValues<float>({1, 1}, {10}));
  CompiledProgram step = executor.Compile(main);
  // Sums of gradients: 1, then 4.
  for (const float value : {0.5f, 0.5f, 1.0f, 3.0f}) {
    step.Run({{"x", Tensor::FromValues<float>({1, 1}, {value})}}, {});
  }
  const auto w = [&] { return executor.scope().Get("w").Item<float>(); };
  EXPECT_EQ(w(), 5.0f);
  {
    const ReplacedValues averaged = training::ApplyAverage(window, &executor);
    EXPECT_EQ(w(), (9.0f + 5.0f) / 2);
  }
  const ReplacedValues averaged = training::ApplyAverage(moving, &executor);
  EXPECT_FLOAT_EQ(w(), (0.25f * 9 + 0.5f * 5) / 0.75f);
}

MakeOptimizer Adam() { return SpecNamed("adam").make; }

// The table of words has the same initial values in each test, so rows that equal those of the
// other training haven't moved.
TEST(GradientMerge, LeavesRowsAloneThatNoBatchOfTheRoundHasLookedUp) {
  for (const char* name : {"lazy_adam", "clipped_lazy_adam", "lazy_adamw", "ftrl"}) {
    const auto net = MakeNet(SpecNamed(name).make, {.gradient_merge = {.steps = kSteps}});
    Training training(*net);
    const std::string table = Parameters(net->main).front();
    const std::vector<float> before = training.Floats(table);
    training.RunSmall(0, kSteps);
    const std::vector<float> after = training.Floats(table);
    ASSERT_EQ(after.size(), static_cast<size_t>(kWords * 5)) << table;
    const Tensor words = Rows(0, kSteps * kSmall)[0].second;
    for (int64_t row = 0; row < kWords; ++row) {
      const bool is_there = std::ranges::count(words.values<int64_t>(), row) > 0;
      const auto at = [&](const std::vector<float>& values) { return values.begin() + row * 5; };
      EXPECT_EQ(std::equal(at(before), at(before) + 5, at(after)), !is_there)
          << name << ", row " << row;
    }
  }
}

// A batch of another size has another number of rows.
TEST(GradientMerge, TakesBatchesOfAnySize) {
  const auto small = MakeNet(SpecNamed("lazy_adam").make, {.gradient_merge = {.steps = 2}});
  const auto large = MakeNet(SpecNamed("lazy_adam").make, {});
  Training merged(*small);
  Training whole(*large);
  merged.Run(Rows(0, 9));
  merged.Run(Rows(9, 10));
  // The mean of the means of 9 rows and of one: as if the last row were there 9 times.
  Tensor words({18}, DType::kInt64);
  Tensor x({18, 6}, DType::kFloat32);
  for (int64_t i = 0; i < 18; ++i) {
    const FeedList row = Rows(std::min<int64_t>(i, 9), std::min<int64_t>(i, 9) + 1);
    words.data<int64_t>()[i] = row[0].second.Item<int64_t>();
    std::copy_n(row[1].second.data<float>(), 6, x.data<float>() + i * 6);
  }
  whole.Run({{"words", words}, {"x", x}});
  ExpectNear(merged, whole);
}

// As a training goes on from another's checkpoint.
void Continue(Training& from, int64_t step, Training* training) {
  const TempDirectory directory;
  SaveCheckpoint(directory.path(), from.program(), from.scope(), step, {});
  LoadLatestCheckpoint(directory.path(), training->program(), &training->scope());
}

TEST(GradientMerge, GoesOnWithAnotherNumberOfSteps) {
  const auto net_of = [](int64_t steps) {
    return MakeNet(SpecNamed("clipped_lazy_adam").make, {.gradient_merge = {.steps = steps}});
  };
  const auto by_two = net_of(2);
  const auto by_four = net_of(4);
  const auto large = MakeNet(SpecNamed("clipped_lazy_adam").make, {});
  // A round of 4 after a round of 2.
  Training two(*by_two), four(*by_four), whole(*large);
  two.RunSmall(0, 2);
  Continue(two, 2, &four);
  four.RunSmall(2, 4);
  whole.Run(Rows(0, 2 * kSmall));
  whole.Run(Rows(2 * kSmall, 6 * kSmall));
  ExpectNear(four, whole);
  // Within a round of 4, whose next run is the last one when rounds are of 2; then one of 2.
  four.RunSmall(6, 3);
  Continue(four, 9, &two);
  two.RunSmall(9, 3);
  whole.Run(Rows(6 * kSmall, 10 * kSmall));
  whole.Run(Rows(10 * kSmall, 12 * kSmall));
  ExpectNear(two, whole);
}

// Clipping by the global norm, a check for infinities and the division of the sums are no op a
// parameter; the norm is that of both.
TEST(GradientMerge, HasAsManyOpsForManyParameters) {
  const auto counts_of = [](int64_t layers) {
    const auto net =
        MakeNet(SpecNamed("clipped_momentum").make,
                {.gradient_merge = {.steps = kSteps}, .skip_non_finite = true}, layers);
    Training training(*net, {.passes = {.also = kFlat}});
    std::map<std::string, int> counts;
    const Plan plan = training.Bind(Rows(0, kSmall)).plan();
    for (const Instruction& instruction : plan.instructions) {
      const Op* op = instruction.op;
      if (op != nullptr && (op->role() & kRoleOptimize) != 0) ++counts[instruction.Name()];
    }
    return counts;
  };
  std::map<std::string, int> counts = counts_of(30);
  EXPECT_EQ(counts, counts_of(2));
  EXPECT_EQ(counts["gradient_merge"], 1);
  EXPECT_EQ(counts["squared_global_norm"], 1);
  EXPECT_EQ(counts["squared_l2_norm"], 0);
  // The decay of the table of words, and the part of the norm that float32 holds.
  EXPECT_EQ(counts["scale"], 2);
}

// Two parameters, each with an optimizer and a schedule of its own.
class TwoSchedules : public ::testing::Test {
 protected:
  TwoSchedules() {
    const Variable x = layers::Data("x", {1, 1});
    const auto product = [&](const char* name) {
      return layers::Fc(x, 1, {.param_attr = {.name = name}, .bias_attr = false});
    };
    loss_ = layers::Mean(layers::ElementwiseAdd(product("u"), product("w")));
  }

  // 1, falling by `gamma` with each step.
  static Variable Rate(float gamma) {
    return learning_rate::Step({.start = 1.0f, .step_size = 1, .gamma = gamma});
  }

  void Minimize(const std::string& parameter, const LearningRate& rate, int64_t steps) {
    optimizer::Sgd({.learning_rate = rate})
        .Minimize(loss_, {.parameters = {parameter}, .gradient_merge = {.steps = steps}});
  }

  std::string ErrorOfMinimize(const std::string& parameter, const LearningRate& rate,
                              int64_t steps) {
    const std::string before = PrintProgram(main_);
    const Error error = ErrorOf([&] { Minimize(parameter, rate, steps); });
    EXPECT_EQ(PrintProgram(main_), before);
    return error.what();
  }

  // Of the first runs.
  std::vector<float> Values(const Variable& rate, int runs) {
    Executor executor(Place::Cpu());
    executor.Run(startup_);
    CompiledProgram step = executor.Compile(main_);
    std::vector<float> values;
    for (int i = 0; i < runs; ++i) {
      values.push_back(step.Run({{"x", Tensor::FromValues<float>({1, 1}, {1})}}, {rate.name()})[0]
                           .Item<float>());
    }
    return values;
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  Variable loss_;
};

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(TwoSchedules, OneMadeAfterAMergeGoesByItsRounds) {
  const Variable first = Rate(0.5f);
  Minimize("u", first, 2);
  const Variable second = Rate(0.25f);
  Minimize("w", second, 2);
  EXPECT_THAT(Values(first, 6), ElementsAre(1, 1, 0.5f, 0.5f, 0.25f, 0.25f));
  EXPECT_THAT(Values(second, 6), ElementsAre(1, 1, 0.25f, 0.25f, 0.0625f, 0.0625f));
}

TEST_F(TwoSchedules, MadeBeforeBothGoByTheirRounds) {
  const Variable first = Rate(0.5f);
  const Variable second = Rate(0.25f);
  Minimize("u", first, 2);
  Minimize("w", second, 2);
  EXPECT_THAT(Values(first, 4), ElementsAre(1, 1, 0.5f, 0.5f));
  EXPECT_THAT(Values(second, 4), ElementsAre(1, 1, 0.25f, 0.25f));
}

TEST_F(TwoSchedules, RefuseRoundsOfDifferentLengths) {
  const Variable first = Rate(0.5f);
  const Variable second = Rate(0.25f);
  Minimize("u", first, 4);
  for (const int64_t steps : {1, 2}) {
    const std::string message = ErrorOfMinimize("w", second, steps);
    EXPECT_THAT(message, HasSubstr("gradient_merge_test.cc:"));
    EXPECT_THAT(message,
                HasSubstr(StrCat("gradient_merge.steps = ", steps,
                                 ", expected 4: the learning "
                                 "rate \"",
                                 second.name(),
                                 "\" goes by the step counter "
                                 "\"@LR_DECAY_COUNTER@\", as that of an optimizer before does")));
  }
}

TEST_F(TwoSchedules, RefuseAMergeAfterAnOptimizerWithout) {
  const Variable rate = Rate(0.5f);
  Minimize("u", rate, 1);
  EXPECT_THAT(ErrorOfMinimize("w", rate, 4), HasSubstr("gradient_merge.steps = 4, expected 1"));
}

TEST_F(TwoSchedules, AConstantRateLeavesTheOthersAlone) {
  Minimize("u", 0.5, 4);
  const Variable rate = Rate(0.5f);
  Minimize("w", rate, 1);
  EXPECT_THAT(Values(rate, 3), ElementsAre(1, 0.5f, 0.25f));
}

TEST_F(TwoSchedules, ALaterConstantRateLeavesTheOthersAlone) {
  const Variable rate = Rate(0.5f);
  Minimize("u", rate, 1);
  Minimize("w", 0.5, 4);
  EXPECT_THAT(Values(rate, 3), ElementsAre(1, 0.5f, 0.25f));
}

TEST(GradientMerge, RefusesZeroSteps) {
  const Error error = ErrorOf([] { MakeNet(Adam(), {.gradient_merge = {.steps = 0}}); });
  EXPECT_THAT(error.what(), ::testing::HasSubstr("gradient_merge.steps = 0, expected a positive"));
}

FeedList Broken(FeedList feeds) {
  feeds[1].second.data<float>()[4] = std::numeric_limits<float>::quiet_NaN();
  return feeds;
}

TEST(SkipNonFinite, LeavesEverythingAsItIsAndCounts) {
  const auto net = MakeNet(Adam(), {.skip_non_finite = true});
  Training training(*net);
  training.RunSmall(0, 2);
  const std::string before = ParametersHash(training);
  training.Run(Broken(Rows(0, kSmall)));
  EXPECT_EQ(ParametersHash(training), before);
  EXPECT_EQ(training.scope().Get(kSkippedUpdates).Item<int64_t>(), 1);
  training.RunSmall(2, 1);
  EXPECT_NE(ParametersHash(training), before);
  EXPECT_EQ(training.scope().Get(kSkippedUpdates).Item<int64_t>(), 1);
}

// Moments and powers haven't moved, either: what follows is what would have followed.
TEST(SkipNonFinite, IsAsIfTheRunHadNotBeen) {
  for (const bool fuse : {false, true}) {
    const auto net = MakeNet(SpecNamed("adamax").make, {.skip_non_finite = true});
    const CompileOptions options{.passes = {.also = fuse ? kFlat : kNone}};
    Training with(*net, options);
    Training without(*net, options);
    with.RunSmall(0, 2);
    with.Run(Broken(Rows(0, kSmall)));
    without.RunSmall(0, 2);
    // The schedule counts runs.
    Tensor* counter = without.scope().FindMutable(kStepCounter);
    ++*counter->data<int64_t>();
    for (Training* training : {&with, &without}) training->RunSmall(2, 2);
    EXPECT_EQ(ParametersHash(with), ParametersHash(without));
  }
}

TEST(SkipNonFinite, DropsARoundWithABrokenBatchAndCountsItOnce) {
  const auto net = MakeNet(Adam(), {.gradient_merge = {.steps = kSteps}, .skip_non_finite = true});
  Training training(*net);
  const std::string before = ParametersHash(training);
  training.RunSmall(0, 1);
  training.Run(Broken(Rows(0, kSmall)));
  training.RunSmall(2, kSteps - 2);
  EXPECT_EQ(ParametersHash(training), before);
  EXPECT_EQ(training.scope().Get(kSkippedUpdates).Item<int64_t>(), 1);
  training.RunSmall(kSteps, kSteps);
  EXPECT_NE(ParametersHash(training), before);
  for (const std::string& name : Parameters(net->main)) {
    for (const float value : training.Floats(name)) EXPECT_TRUE(std::isfinite(value)) << name;
  }
}

}  // namespace
}  // namespace skiff
