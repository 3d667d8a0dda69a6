#include "models/ernie/ernie.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/io/parameters.h"
#include "framework/io/weights_hash.h"
#include "models/ernie/fine_tuning.h"
#include "models/ernie/pretraining.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/error_text.h"
#include "tests/harness/pass_check.h"
#include "tests/harness/workload.h"

namespace skiff::models {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Ne;

constexpr int64_t kLength = 8;
constexpr int64_t kMasked = 3;
constexpr int64_t kWords = 40;

ErnieOptions SmallOptions(float dropout = 0) {
  return {.vocabulary = kWords,
          .hidden = 16,
          .layers = 2,
          .heads = 2,
          .feed_forward = 32,
          .positions = 12,
          .dropout = dropout,
          .attention_dropout = dropout};
}

// For comparisons: the gradient of a key's bias is 0 but for rounding, which Adam would make as
// large a step as any other.
training::OptimizationOptions MomentumOptions() {
  return {.learning_rate = 5e-3f, .schedule = training::ScheduleKind::kConstant};
}

training::OptimizationOptions AdamOptions() {
  return {.optimizer = "adam",
          .learning_rate = 5e-3f,
          .schedule = training::ScheduleKind::kConstant,
          .weight_decay = 0,
          .clip_norm = 1};
}

training::TrainingProgram PretrainingOf(const ErnieOptions& options,
                                        const training::OptimizationOptions& optimization) {
  return BuildErniePretraining(options, {.length = kLength, .masked = kMasked}, optimization, 3);
}

training::TrainingProgram SmallPretraining(
    float dropout = 0, const training::OptimizationOptions& optimization = AdamOptions()) {
  return PretrainingOf(SmallOptions(dropout), optimization);
}

Tensor Ids(const Shape& shape, uint64_t seed, int64_t limit) {
  return harness::ToTensor(harness::Integers(shape, seed, 0, limit), DType::kInt64);
}

// A batch of n sequences whose last token is padding, with one place of weight 0 in each.
FeedList Feeds(int64_t n, uint64_t seed) {
  Tensor positions({n, kLength}, DType::kInt64);
  Tensor mask({n, kLength}, DType::kFloat32);
  Tensor places({n, kMasked}, DType::kInt64);
  Tensor weights({n, kMasked}, DType::kFloat32);
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t i = 0; i < kLength; ++i) {
      positions.data<int64_t>()[row * kLength + i] = i;
      mask.data<float>()[row * kLength + i] = i + 1 < kLength ? 1 : 0;
    }
    for (int64_t i = 0; i < kMasked; ++i) {
      places.data<int64_t>()[row * kMasked + i] = row * kLength + 1 + i;
      weights.data<float>()[row * kMasked + i] = i + 1 < kMasked ? 1 : 0;
    }
  }
  return {{"token_ids", Ids({n, kLength}, seed, kWords)},
          {"sentence_ids", Ids({n, kLength}, seed + 1, 2)},
          {"position_ids", positions},
          {"input_mask", mask},
          {"masked_positions", places},
          {"masked_labels", Ids({n, kMasked}, seed + 2, kWords)},
          {"masked_weights", weights},
          {"sentence_label", Ids({n, 1}, seed + 3, 2)}};
}

size_t ParametersOf(const Program& program) {
  return static_cast<size_t>(std::ranges::count_if(
      program.root()->vars(), [](const auto& var) { return var->is_parameter; }));
}

// 16 a layer, 3 embeddings, 2 of the norm before the layers, 2 of the pooler, 5 of masked words and
// 2 of the sentence task: 206 tensors for 12 layers, as published, and 334 for 20.
TEST(Ernie, HasThePublishedNumberOfParameters) {
  for (const auto& [preset, expected] : {std::pair("tiny", 46), {"base", 206}, {"xbase", 334}}) {
    ErnieOptions options = ErniePreset(preset);
    options.vocabulary = 100;
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    AppendErniePretraining(options, {});
    EXPECT_EQ(ParametersOf(main), static_cast<size_t>(expected)) << preset;
  }
}

TEST(Ernie, TaskEmbeddingsAreOneMoreParameter) {
  ErnieOptions options = SmallOptions();
  options.tasks = 3;
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const PretrainingLoss built =
      AppendErniePretraining(options, {.length = kLength, .masked = kMasked});
  EXPECT_EQ(ParametersOf(main), 47u);
  EXPECT_THAT(InputNames(built.inputs, options), Contains("task_ids"));
}

// What padding holds changes no score: the tokens don't see it.
// The values that an attribute has in the forward ops of a type.
template <typename T>
std::set<T> AttributesOf(const Program& program, const std::string& type, const char* name) {
  std::set<T> values;
  for (const auto& op : program.root()->ops()) {
    if (op->type == type) values.insert(op->Attr<T>(name, T()));
  }
  return values;
}

TEST(Ernie, EveryLayerNormAddsTheOptionsEpsilon) {
  ErnieOptions options = SmallOptions();
  const auto epsilons = [&] {
    return AttributesOf<float>(*PretrainingOf(options, AdamOptions()).main, "layer_norm",
                               "epsilon");
  };
  EXPECT_THAT(epsilons(), ElementsAre(1e-5f)) << "as in ERNIE 1.0, and in earlier versions";
  options.layer_norm_eps = 1e-12f;
  EXPECT_THAT(epsilons(), ElementsAre(1e-12f));
}

TEST(Ernie, GeluNewIsTheApproximation) {
  ErnieOptions options = SmallOptions();
  const auto approximate = [&] {
    return AttributesOf<bool>(*PretrainingOf(options, AdamOptions()).test, "gelu", "approximate");
  };
  EXPECT_THAT(approximate(), ElementsAre(false));
  options.act = "gelu_new";
  EXPECT_THAT(approximate(), ElementsAre(true));
}

TEST(Ernie, PaddingIsNotSeen) {
  const training::TrainingProgram program = SmallPretraining();
  Executor executor;
  executor.Run(*program.startup);
  CompiledProgram test = executor.Compile(*program.test);
  FeedList feeds = Feeds(2, 5);
  const std::string scores = program.model_outputs[0];
  const std::vector<float> before = test.Run(feeds, {scores})[0].ToVector<float>();
  Tensor tokens = CopyToCpu(feeds[0].second);
  for (int64_t row = 0; row < 2; ++row) tokens.data<int64_t>()[row * kLength + kLength - 1] += 1;
  feeds[0].second = tokens;
  EXPECT_EQ(test.Run(feeds, {scores})[0].ToVector<float>(), before);
  tokens.data<int64_t>()[1] = (tokens.data<int64_t>()[1] + 1) % kWords;
  EXPECT_NE(test.Run(feeds, {scores})[0].ToVector<float>(), before) << "but other tokens are";
}

// A place of weight 0 counts neither in the loss nor in the accuracy.
TEST(Ernie, PlacesOfWeightZeroCountNothing) {
  const training::TrainingProgram program = SmallPretraining();
  Executor executor;
  executor.Run(*program.startup);
  CompiledProgram test = executor.Compile(*program.test);
  FeedList feeds = Feeds(2, 5);
  const auto loss = [&] { return test.Run(feeds, {program.loss})[0].Item<float>(); };
  const float before = loss();
  Tensor& labels = feeds[5].second;
  labels.data<int64_t>()[kMasked - 1] = (labels.data<int64_t>()[kMasked - 1] + 7) % kWords;
  EXPECT_EQ(loss(), before);
  labels.data<int64_t>()[0] = (labels.data<int64_t>()[0] + 7) % kWords;
  EXPECT_NE(loss(), before);
}

// The loss and the gradients of all parameters in a training step; in the order of the parameters.
std::vector<std::vector<float>> LossAndGradients(const training::TrainingProgram& program,
                                                 const FeedList& feeds) {
  FetchList fetches = {program.loss};
  for (const auto& var : program.main->root()->vars()) {
    if (var->is_parameter) fetches.push_back(var->name + "@GRAD");
  }
  Executor executor;
  executor.Run(*program.startup);
  std::vector<std::vector<float>> values;
  for (const Tensor& value : executor.Run(*program.main, feeds, fetches)) {
    values.push_back(value.ToVector<float>());
  }
  return values;
}

// So the loss needn't compute the scores of unused places.
TEST(Ernie, PlacesThatAreIgnoredGiveTheGradientsOfWeightZero) {
  const training::TrainingProgram program = SmallPretraining(0.1f);
  FeedList feeds = Feeds(2, 5);
  const auto of_weight_zero = LossAndGradients(program, feeds);
  Tensor& labels = feeds[5].second;
  for (int64_t row = 0; row < 2; ++row) labels.data<int64_t>()[(row + 1) * kMasked - 1] = -100;
  EXPECT_EQ(LossAndGradients(program, feeds), of_weight_zero);
}

// Sequences of three tasks in a batch: a head learns from those of its own task alone, and the
// others have labels that are out of its range.
TEST(Ernie, SentenceTasksLearnFromTheirOwnSequences) {
  ErnieOptions options = SmallOptions();
  options.tasks = 3;
  const training::TrainingProgram program = BuildErniePretraining(
      options,
      {.length = kLength,
       .masked = kMasked,
       .sentence_tasks = {{"next_sentence", 1, 2}, {"reordering", 2, 9}, {"distance", 0, 3}}},
      AdamOptions(), 3);
  FeedList feeds = Feeds(4, 9);
  feeds.emplace_back("task_ids", Tensor({4, kLength}, DType::kInt64));
  const auto set = [&](int64_t row, int64_t task, int64_t label) {
    feeds[7].second.data<int64_t>()[row] = label;
    std::fill_n(feeds[8].second.data<int64_t>() + row * kLength, kLength, task);
  };
  set(0, 1, 1);
  set(1, 2, 8);
  set(2, 2, 5);
  set(3, 2, 7);
  Executor executor;
  executor.Run(*program.startup);
  CompiledProgram step = executor.Compile(*program.main);
  const FetchList fetches = {program.loss, "next_sent_fc.w_0@GRAD", "distance_fc.w_0@GRAD"};
  const std::vector<Tensor> first = step.Run(feeds, fetches);
  EXPECT_THAT(first[1].ToVector<float>(), Contains(Ne(0)));
  EXPECT_THAT(first[2].ToVector<float>(), Each(0)) << "no sequence is of this task";
  for (int i = 0; i < 60; ++i) step.Run(feeds, {});
  CompiledProgram test = executor.Compile(*program.test);
  FetchList metrics;
  for (const training::Metric& metric : program.metrics) {
    if (metric.name == "masked_loss") continue;
    metrics.push_back(metric.variable);
    if (!metric.weight.empty()) metrics.push_back(metric.weight);
  }
  std::vector<float> values;
  for (const Tensor& value : test.Run(feeds, metrics)) values.push_back(value.Item<float>());
  // Accuracy and weight of masked tokens, answers, next_sentence, reordering and distance.
  EXPECT_THAT(values, ElementsAre(1, 8, 1, 4, 1, 1, 1, 3, 0, 0));
}

// As questions are: they cost nothing and don't count.
TEST(Ernie, SequencesWithoutALabelHaveNoSentenceLoss) {
  const training::TrainingProgram program = SmallPretraining();
  FeedList feeds = Feeds(2, 5);
  std::fill_n(feeds[7].second.data<int64_t>(), 2, -100);
  Executor executor;
  executor.Run(*program.startup);
  const training::Metric& masked = program.metrics[2];
  const training::Metric& sentence = program.metrics[3];
  ASSERT_EQ(masked.name, "masked_loss");
  ASSERT_EQ(sentence.name, "next_sentence_accuracy");
  const std::vector<Tensor> values = executor.Run(
      *program.test, feeds, {program.loss, masked.variable, sentence.variable, sentence.weight});
  EXPECT_EQ(values[0].Item<float>(), values[1].Item<float>());
  EXPECT_EQ(values[2].Item<float>(), 0);
  EXPECT_EQ(values[3].Item<float>(), 0);
}

TEST(Ernie, LearnsABatchByHeart) {
  const training::TrainingProgram program = SmallPretraining(0.1f);
  Executor executor;
  executor.Run(*program.startup);
  CompiledProgram step = executor.Compile(*program.main);
  const FeedList feeds = Feeds(4, 9);
  const float first = step.Run(feeds, {program.loss})[0].Item<float>();
  for (int i = 0; i < 60; ++i) step.Run(feeds, {});
  CompiledProgram test = executor.Compile(*program.test);
  const std::vector<Tensor> after =
      test.Run(feeds, {program.loss, program.metrics[0].variable, program.metrics[1].variable});
  EXPECT_LT(after[0].Item<float>(), 0.2f * first);
  EXPECT_EQ(after[1].Item<float>(), 1) << "of the masked tokens";
  EXPECT_EQ(after[2].Item<float>(), 1) << "of the sequences";
}

// Returns loss and accuracies in this dtype, with the same weights.
std::vector<double> NumbersIn(DType dtype) {
  ErnieOptions options = SmallOptions();
  options.dtype = dtype;
  const training::TrainingProgram program = PretrainingOf(options, AdamOptions());
  const training::TrainingProgram initial = SmallPretraining();
  Executor executor;
  executor.Run(*initial.startup);
  for (const std::string& name : PersistableNames(*initial.test)) {
    executor.scope().Assign(name, harness::Cast(*executor.scope().Find(name), dtype));
  }
  FeedList feeds = Feeds(4, 9);
  for (auto& [name, feed] : feeds) {
    if (IsFloat(feed.dtype())) feed = harness::Cast(feed, dtype);
  }
  FetchList fetches = {program.loss};
  for (const training::Metric& metric : program.metrics) fetches.push_back(metric.variable);
  std::vector<double> numbers;
  CompiledProgram test = executor.Compile(*program.test);
  for (const Tensor& number : test.Run(feeds, fetches)) {
    numbers.push_back(harness::ToArray(number).values[0]);
  }
  return numbers;
}

TEST(Ernie, ComputesTheSameInFloat64) {
  const std::vector<double> expected = NumbersIn(DType::kFloat32);
  const std::vector<double> found = NumbersIn(DType::kFloat64);
  EXPECT_THAT(found, ::testing::Pointwise(::testing::DoubleNear(1e-5), expected));
  EXPECT_NE(found[0], expected[0]) << "since float32 rounds more";
}

harness::Workload PretrainingWorkload() {
  training::TrainingProgram program = SmallPretraining(0.1f, MomentumOptions());
  harness::Workload workload{.name = "ernie"};
  const FetchList fetches = {program.loss, "encoder_layer_0_multi_head_att_query_fc.w_0@GRAD",
                             "word_embedding@GRAD"};
  const FetchList scores = {program.loss, program.model_outputs[0]};
  workload.startup = std::move(program.startup);
  workload.programs = {std::move(program.main), std::move(program.test)};
  workload.runs = {{0, Feeds(4, 1), fetches},
                   {1, Feeds(4, 2), scores},
                   {0, Feeds(3, 3), fetches},
                   {0, Feeds(4, 4), {fetches[0]}}};
  return workload;
}

TEST(Ernie, GivesTheSameWithEveryPass) {
  EXPECT_THAT(harness::FaultsOfEveryPass(PretrainingWorkload()), IsEmpty());
}

constexpr int64_t kSteps = 20;

struct Trajectory {
  std::vector<double> losses;  // of each step
  std::string state;           // hash of parameters and optimizer states at the end
};

// As models/ernie/train by default: AdamW with weight decay, clipping by the global norm, dropout.
Trajectory TrajectoryWith(const std::string& passes, Recompute recompute = Recompute::kNothing) {
  const training::TrainingProgram program =
      PretrainingOf(SmallOptions(0.1f), {.optimizer = "adamw",
                                         .learning_rate = 1e-3f,
                                         .total_steps = kSteps,
                                         .warmup_updates = 5,
                                         .weight_decay = 0.01f,
                                         .exclude_from_decay = {"layer_norm", ".b_0"},
                                         .clip_norm = 1});
  Executor executor;
  executor.Run(*program.startup);
  CompiledProgram step = executor.Compile(
      *program.main, {.memory = {.recompute = recompute}, .passes = ParsePasses(passes)});
  Trajectory trajectory;
  for (uint64_t i = 0; i < kSteps; ++i) {
    trajectory.losses.push_back(step.Run(Feeds(4, 10 * i), {program.loss})[0].Item<float>());
  }
  trajectory.state = WeightsHash(executor.scope(), PersistableNames(*program.main));
  return trajectory;
}

TEST(Ernie, TrainsToTheSameBitsWithPassesThatChangeNone) {
  const Trajectory expected = TrajectoryWith("");
  const auto expect_equal = [&](const std::string& passes, Recompute recompute) {
    SCOPED_TRACE(passes + ", recompute " + std::string(RecomputeName(recompute)));
    const Trajectory found = TrajectoryWith(passes, recompute);
    EXPECT_EQ(found.losses, expected.losses);
    EXPECT_EQ(found.state, expected.state);
  };
  for (const char* passes : {"+fuse_optimizer", "+flatten_parameters", "-memory_reuse",
                             "+fuse_optimizer,+flatten_parameters"}) {
    expect_equal(passes, Recompute::kNothing);
  }
  expect_equal("", Recompute::kCheapOps);
  expect_equal("", Recompute::kLeastMemory);
  expect_equal("+fuse_optimizer,+flatten_parameters", Recompute::kLeastMemory);
}

// Of the losses, since AdamW makes a step of the rounding that is the gradient of a key's bias.
TEST(Ernie, TrainsAlikeWithPassesThatRoundDifferently) {
  const Trajectory expected = TrajectoryWith("");
  for (const std::string pass : {"fuse_attention", "fuse_bias_act", "fuse_linear",
                                 "fuse_residual_layer_norm", "fuse_softmax_loss"}) {
    SCOPED_TRACE(pass);
    const double tolerance = MakePlanPass(pass)->tolerance();
    const Trajectory found = TrajectoryWith("-" + pass);
    for (size_t i = 0; i < kSteps; ++i) {
      EXPECT_NEAR(found.losses[i], expected.losses[i], tolerance * expected.losses[i]) << i;
    }
  }
}

TEST(Ernie, FineTuningLearnsABatchByHeart) {
  const training::TrainingProgram program =
      BuildErnieFineTuning(SmallOptions(), kLength, 3, AdamOptions(), 3);
  Executor executor;
  executor.Run(*program.startup);
  CompiledProgram step = executor.Compile(*program.main);
  FeedList feeds = Feeds(6, 9);
  feeds.resize(4);
  feeds.emplace_back("label", Ids({6, 1}, 2, 3));
  for (int i = 0; i < 40; ++i) step.Run(feeds, {});
  const std::vector<Tensor> after =
      step.Run(feeds, {program.metrics[0].variable, program.model_outputs[0]});
  EXPECT_EQ(after[0].Item<float>(), 1);
  EXPECT_EQ(after[1].shape(), Shape({6, 3}));
}

TEST(Ernie, RefusesWhatDoesNotFit) {
  const auto error = [](const ErnieOptions& options, const PretrainingShape& shape) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    return InvalidArgumentText([&] { AppendErniePretraining(options, shape); });
  };
  EXPECT_THAT(error(SmallOptions(), {.length = 13, .masked = 2}),
              HasSubstr("sequences of length 13: expected 1 to the 12 positions"));
  EXPECT_THAT(error(SmallOptions(), {.length = 8, .masked = 9}),
              HasSubstr("9 masked tokens in a sequence of length 8"));
  EXPECT_THAT(error(SmallOptions(),
                    {.length = 8, .masked = 2, .sentence_tasks = {{.name = "mood", .classes = 1}}}),
              HasSubstr("1 classes of sequences: expected at least 2"));
}

}  // namespace
}  // namespace skiff::models
