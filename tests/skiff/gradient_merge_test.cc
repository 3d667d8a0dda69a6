// Updates that are made once in several runs, or left out: MinimizeOptions::gradient_merge and
// skip_non_finite, with the optimizers' passes on and off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "skiff/skiff.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using optimizer::MinimizeOptions;
using optimizer::Optimizer;

constexpr int64_t kWords = 11;
constexpr int64_t kSteps = 4;  // small batches that make a large one
constexpr int64_t kSmall = 3;  // rows of a small one

// Given the learning rate, which a schedule halves with each update.
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const LearningRate&)>;

struct Net {
  Program main;
  Program startup;
  std::string loss;
};

std::unique_ptr<Net> MakeNet(const MakeOptimizer& make, const MinimizeOptions& options) {
  auto net = std::make_unique<Net>();
  const ProgramGuard guard(&net->main, &net->startup);
  const Variable words = layers::Data("words", {-1}, DType::kInt64);
  const Variable x = layers::Data("x", {-1, 6});
  const LearningRate rate = learning_rate::Step({.start = 0.5f, .step_size = 1, .gamma = 0.5f});
  const Variable embedded =
      layers::Embedding(words, {.rows = kWords, .width = 5, .is_sparse = true});
  const Variable y = layers::Fc(layers::Concat({embedded, x}, 1), 7, {.act = "tanh"});
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

class Training {
 public:
  explicit Training(const Net& net, const CompileOptions& options = {})
      : net_(net), compiled_(Start(net, options)) {}

  void Run(const FeedList& feeds) { compiled_.Run(feeds, {net_.loss}); }
  // `count` small batches.
  void RunSmall(int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) Run(Rows(i * kSmall, (i + 1) * kSmall));
  }
  std::string Hash() const { return WeightsHash(executor_.scope(), PersistableNames(net_.main)); }
  Scope& scope() { return executor_.scope(); }
  std::vector<float> Values(const std::string& name) { return scope().Get(name).ToVector<float>(); }
  const Program& program() const { return net_.main; }

 private:
  CompiledProgram Start(const Net& net, const CompileOptions& options) {
    executor_.Run(net.startup);
    return executor_.Compile(net.main, options);
  }

  const Net& net_;
  Executor executor_{Place::Cpu()};
  CompiledProgram compiled_;
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
    const std::vector<float> x = a.Values(name);
    const std::vector<float> y = b.Values(name);
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
          SpecOf<Adagrad>("adagrad", AdagradOptions{.epsilon = 1e-1f})};
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
  Training fused(*net, {.fuse_optimizer = true, .flatten_parameters = true});
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
  const Variable y = layers::Fc(x, 1, {.param_attr = {.name = "w"}, .bias_attr = std::nullopt});
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
    const ReplacedValues averaged = window.Apply(&executor);
    EXPECT_EQ(w(), (9.0f + 5.0f) / 2);
  }
  const ReplacedValues averaged = moving.Apply(&executor);
  EXPECT_FLOAT_EQ(w(), (0.25f * 9 + 0.5f * 5) / 0.75f);
}

MakeOptimizer Adam() { return Specs()[2].make; }

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
    const auto net = MakeNet(Specs()[3].make, {.skip_non_finite = true});
    const CompileOptions options{.fuse_optimizer = fuse, .flatten_parameters = fuse};
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
    for (const float value : training.Values(name)) EXPECT_TRUE(std::isfinite(value)) << name;
  }
}

}  // namespace
}  // namespace skiff
