#include "models/char_rnn/char_rnn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/executor/executor.h"
#include "models/char_rnn/stream_reader.h"
#include "tests/harness/error_text.h"
#include "tests/harness/pass_check.h"
#include "tests/harness/workload.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kCharacters = 11;
constexpr int64_t kBatch = 3;

// Random, but each character narrows the next one down to three.
std::vector<int64_t> Text(size_t length) {
  std::vector<int64_t> text = {0};
  uint32_t state = 7;
  while (text.size() < length) {
    state = state * 1664525u + 1013904223u;
    text.push_back((text.back() * 3 + 1 + (state >> 16) % 3) % kCharacters);
  }
  return text;
}

// The feeds of all batches of an epoch.
std::vector<FeedList> Batches(size_t length, int64_t steps) {
  const std::vector<int64_t> text = Text(length);
  StreamReader reader(&text, {.batch_size = kBatch, .steps = steps});
  std::vector<FeedList> batches;
  for (training::Batch batch; reader.Next(&batch);) batches.push_back(batch.feeds);
  return batches;
}

FeedList WriterFeeds(size_t prompt, int64_t length) {
  return {{kPrompt, Tensor::FromValues<int64_t>({static_cast<int64_t>(prompt)}, Text(prompt))},
          {kRoom, Tensor::FromValues<int64_t>({length},
                                              std::vector<int64_t>(static_cast<size_t>(length)))},
          {kTemperature, Tensor::FromValues<float>({1}, {0.5f})},
          {kTopK, Tensor::FromValues<int64_t>({1}, {4})}};
}

CharRnnOptions Small(const std::string& cell, const std::string& loop, int64_t layers) {
  return {.cell = cell,
          .loop = loop,
          .characters = kCharacters,
          .embedding = 6,
          .hidden = 5,
          .layers = layers};
}

constexpr float kRate = 0.5f;

training::TrainingProgram Build(const CharRnnOptions& options) {
  return BuildCharRnn(options, kBatch,
                      {.optimizer = "sgd",
                       .learning_rate = kRate,
                       .schedule = training::ScheduleKind::kConstant,
                       .weight_decay = 0},
                      1);
}

using Parameters = std::map<std::string, std::vector<float>>;

Parameters ParametersOf(const training::TrainingProgram& program, const Executor& executor) {
  Parameters parameters;
  for (const auto& var : program.main->root()->vars()) {
    if (var->is_parameter)
      parameters[var->name] = executor.scope().Get(var->name).ToVector<float>();
  }
  return parameters;
}

class CharRnn : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(, CharRnn, ::testing::Values("lstm", "gru"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(CharRnn, HasTheSameLossesWithBothLoops) {
  // The last batch is shorter.
  const std::vector<FeedList> batches = Batches(3 * 33 + 1, 8);
  for (const int64_t layers : {1, 2}) {
    SCOPED_TRACE(layers);
    const auto train = [&](const std::string& loop) {
      const training::TrainingProgram program = Build(Small(GetParam(), loop, layers));
      Executor executor;
      executor.Run(*program.startup);
      CompiledProgram step = executor.Compile(*program.main);
      std::vector<float> losses;
      for (int epoch = 0; epoch < 4; ++epoch) {
        for (const FeedList& batch : batches)
          losses.push_back(step.Run(batch, {program.loss})[0].Item<float>());
      }
      return std::pair(losses, ParametersOf(program, executor));
    };
    const auto [with_static, parameters] = train("static");
    const auto [with_while, parameters_of_while] = train("while");
    ASSERT_EQ(with_static.size(), 20u);
    for (size_t i = 0; i < with_static.size(); ++i)
      EXPECT_NEAR(with_static[i], with_while[i], 1e-5f) << i;
    ASSERT_EQ(parameters.size(), 3u + 3u * static_cast<size_t>(layers));
    for (const auto& [name, values] : parameters) {
      const std::vector<float>& others = parameters_of_while.at(name);
      ASSERT_EQ(values.size(), others.size());
      for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], others[i], 1e-5f) << name;
    }
    // The same batch, three epochs later.
    EXPECT_LT(with_static[15], with_static[0]);
  }
}

TEST_P(CharRnn, CarriesTheStateAsInOneLongSequence) {
  for (const std::string loop : {"static", "while"}) {
    const training::TrainingProgram program = Build(Small(GetParam(), loop, 2));
    Executor executor;
    executor.Run(*program.startup);
    CompiledProgram test = executor.Compile(*program.test);
    const auto mean_loss = [&](int64_t steps) {
      double sum = 0;
      const std::vector<FeedList> batches = Batches(3 * 24 + 1, steps);
      for (const FeedList& batch : batches)
        sum += static_cast<double>(test.Run(batch, {program.loss})[0].Item<float>());
      return sum / static_cast<double>(batches.size());
    };
    const double of_one = mean_loss(24);
    EXPECT_NEAR(mean_loss(8), of_one, 1e-6);
    EXPECT_NEAR(mean_loss(1), of_one, 1e-6);
    // Each epoch begins with states of 0 again.
    EXPECT_EQ(mean_loss(24), of_one);
    // Without the carried state it is another number.
    double forgetful = 0;
    for (FeedList batch : Batches(3 * 24 + 1, 8)) {
      batch[2].second = Tensor::FromValues<float>({1}, {0});
      forgetful += static_cast<double>(test.Run(batch, {program.loss})[0].Item<float>()) / 3;
    }
    EXPECT_GT(std::abs(forgetful - of_one), 1e-5);
  }
}

// Differences of the loss, with the state that is carried into the batch held fixed: so gradients
// flow through all steps of a batch, and no further.
TEST_P(CharRnn, GradientsAreThoseOfTheBatch) {
  for (const std::string loop : {"static", "while"}) {
    const CharRnnOptions options = Small(GetParam(), loop, 2);
    const training::TrainingProgram program = Build(options);
    Executor executor;
    executor.Run(*program.startup);
    CompiledProgram test = executor.Compile(*program.test);
    const std::vector<FeedList> batches = Batches(3 * 12 + 1, 6);
    test.Run(batches[0], {program.loss});
    std::map<std::string, std::vector<float>> carried;
    for (const std::string& name : CharRnnStates(options))
      carried[name] = executor.scope().Get(name).ToVector<float>();
    const auto restore = [&] {
      for (const auto& [name, values] : carried)
        executor.scope().Set(name, Tensor::FromValues<float>({kBatch, options.hidden}, values));
    };
    const Parameters before = ParametersOf(program, executor);
    restore();
    executor.Compile(*program.main).Run(batches[1], {program.loss});
    const Parameters after = ParametersOf(program, executor);

    for (const auto& [name, values] : before) {
      const Shape shape = executor.scope().Get(name).shape();
      // Along the gradient itself, which SGD's update shows.
      std::vector<float> gradient(values.size());
      double squared = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        gradient[i] = (values[i] - after.at(name)[i]) / kRate;
        squared += static_cast<double>(gradient[i]) * static_cast<double>(gradient[i]);
      }
      ASSERT_GT(squared, 0) << name;
      const double length = 0.02 / std::sqrt(squared);
      double losses[2];
      for (const int side : {0, 1}) {
        for (const auto& [other, own] : before) {
          executor.scope().Set(other,
                               Tensor::FromValues<float>(executor.scope().Get(other).shape(), own));
        }
        std::vector<float> moved = values;
        for (size_t i = 0; i < moved.size(); ++i) {
          moved[i] += static_cast<float>((side == 0 ? 1 : -1) * length) * gradient[i];
        }
        executor.scope().Set(name, Tensor::FromValues<float>(shape, moved));
        restore();
        losses[side] = static_cast<double>(test.Run(batches[1], {program.loss})[0].Item<float>());
      }
      const double found = (losses[0] - losses[1]) / (2 * length);
      EXPECT_NEAR(found / squared, 1, 0.02) << loop << " " << name;
    }
  }
}

TEST_P(CharRnn, GivesTheSameWithEveryPass) {
  for (const std::string loop : {"static", "while"}) {
    training::TrainingProgram program = Build(Small(GetParam(), loop, 2));
    harness::Workload workload{.name = StrCat("char_", GetParam(), "_", loop)};
    const std::vector<FeedList> batches = Batches(3 * 20 + 1, 8);
    const FetchList fetches = {program.loss, "layer_0.state.w@GRAD"};
    workload.startup = std::move(program.startup);
    workload.runs = {{0, batches[0], fetches},
                     {0, batches[1], fetches},
                     {0, batches[2], {program.loss}},
                     {1, batches[0], {program.loss}},
                     {2, WriterFeeds(3, 9), program.model_outputs},
                     {2, WriterFeeds(1, 2), program.model_outputs}};
    workload.programs = {std::move(program.main), std::move(program.test),
                         std::move(program.model)};
    EXPECT_THAT(harness::FaultsOfEveryPass(workload), IsEmpty()) << loop;
  }
}

TEST(CharRnnOptions, AreChecked) {
  const auto message = [](const CharRnnOptions& options) {
    return InvalidArgumentText([&] { BuildCharRnn(options, 2, {}, 1); });
  };
  EXPECT_THAT(message({.cell = "rnn", .characters = 9}),
              HasSubstr("cell = \"rnn\", expected lstm or gru"));
  EXPECT_THAT(message({.loop = "for", .characters = 9}),
              HasSubstr("loop = \"for\", expected static or while"));
  EXPECT_THAT(message({}), HasSubstr("characters = 0, expected at least 1"));
  EXPECT_THAT(message({.characters = 9, .layers = 0}), HasSubstr("layers = 0"));
  EXPECT_THAT(InvalidArgumentText([] { BuildCharRnn({.characters = 9}, 0, {}, 1); }),
              HasSubstr("batch_size = 0"));
}

}  // namespace
}  // namespace skiff::models
