#include "models/line_reader/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "models/line_reader/error_rate.h"
#include "models/line_reader/line_data.h"
#include "models/line_reader/line_recognizer.h"
#include "tests/harness/error_text.h"
#include "tests/harness/pass_check.h"
#include "tests/harness/temp_directory.h"
#include "tests/harness/workload.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

LineReaderOptions Small() { return {.characters = 37, .filters = 2, .hidden = 3}; }

FeedList Feeds(const LineData& data, int64_t epoch) {
  training::Batch batch;
  const auto reader = data.TrainReader();
  reader->StartEpoch(epoch);
  EXPECT_TRUE(reader->Next(&batch));
  return batch.feeds;
}

TEST(LineReader, HasTheParametersOfItsLayers) {
  const training::TrainingProgram program = BuildLineReader({.characters = 37}, {}, 1);
  int64_t parameters = 0;
  for (const auto& var : program.main->root()->vars()) {
    if (var->is_parameter) parameters += Shape(var->dims).element_count();
  }
  // Batch norm has scale, shift and two moving statistics.
  const int64_t convolutions = 9 * (1 * 16 + 16 * 32 + 32 * 48) + 4 * (16 + 32 + 48);
  const int64_t lstm = 2 * (4 * 64 * (96 + 64) + 2 * 4 * 64);
  EXPECT_EQ(parameters, convolutions + lstm + 129 * 38);
}

TEST(LineReader, GivesTheSameWithEveryPass) {
  const LineData data({.lines = 5, .validation_lines = 1, .batch_size = 2});
  training::TrainingProgram program = BuildLineReader(Small(), {}, 1);
  harness::Workload workload{.name = "line_reader"};
  const std::string distances = program.metrics[0].streamed[0];
  workload.startup = std::move(program.startup);
  workload.runs = {{0, Feeds(data, 0), {program.loss, "conv2d_0.w_0@GRAD"}},
                   {1, Feeds(data, 1), {program.loss, program.model_outputs[0], distances}}};
  workload.programs = {std::move(program.main), std::move(program.test)};
  EXPECT_THAT(harness::FaultsOfEveryPass(workload), IsEmpty());
}

// What stands beside a line in its batch changes nothing but the padding behind it.
TEST(LineReader, LinesOfOneBatchDoNotMix) {
  const training::TrainingProgram program = BuildLineReader(Small(), {}, 1);
  Executor executor;
  executor.Run(*program.startup);
  const auto logits = [&](const std::vector<LineImage>& images) {
    const PaddedImages padded = Padded(images);
    const int64_t count = std::ssize(images);
    const auto zeros = [&](const Shape& shape) {
      return Tensor::FromValues<int64_t>(
          shape, std::vector<int64_t>(static_cast<size_t>(shape.element_count()), 0));
    };
    return executor
        .Run(*program.test,
             {{LineBatches::kImage, padded.images},
              {LineBatches::kSteps, padded.steps},
              {LineBatches::kLabel, zeros({count, 8})},
              {LineBatches::kLabelLength, zeros({count})}},
             {program.model_outputs[0]})[0]
        .ToVector<float>();
  };
  const ReadableLine one = GeneratedLine(1, 0);
  const ReadableLine other = GeneratedLine(1, 1);
  const std::vector<float> together = logits({one.image, other.image});
  const std::vector<float> alone = logits({one.image});
  for (int64_t t = 0; t < StepsOf(one.image.width); ++t) {
    for (int64_t c = 0; c < 38; ++c) {
      EXPECT_NEAR(together[static_cast<size_t>(t * 2 * 38 + c)],
                  alone[static_cast<size_t>(t * 38 + c)], 1e-5);
    }
  }
}

TEST(LineReader, LowersTheLossInAFewSteps) {
  const LineData data({.lines = 4, .validation_lines = 1, .batch_size = 4});
  training::OptimizationOptions optimization;
  optimization.optimizer = "adam";
  optimization.learning_rate = 0.01f;
  optimization.schedule = training::ScheduleKind::kConstant;
  const training::TrainingProgram program =
      BuildLineReader({.characters = 37, .filters = 4, .hidden = 8, .dropout = 0}, optimization, 1);
  Executor executor;
  executor.Run(*program.startup);
  const FeedList feeds = Feeds(data, 0);
  std::vector<float> losses;
  for (int step = 0; step < 30; ++step)
    losses.push_back(executor.Run(*program.main, feeds, {program.loss})[0].Item<float>());
  EXPECT_LT(losses.back(), 0.7f * losses.front());
}

TEST(LineReader, RefusesSizesThatAreNone) {
  const auto message = [](const LineReaderOptions& options) {
    return InvalidArgumentText([&] { BuildLineReader(options, {}, 1); });
  };
  EXPECT_THAT(message({}), HasSubstr("characters = 0, expected at least 1"));
  EXPECT_THAT(message({.characters = 3, .filters = 0}), HasSubstr("filters = 0"));
  EXPECT_THAT(message({.characters = 3, .hidden = -1}), HasSubstr("hidden = -1"));
}

TEST(ErrorRate, IsTheSumOfDistancesByTheSumOfLengths) {
  ErrorRate rate;
  EXPECT_TRUE(std::isnan(rate.Value()));
  const auto batch = [](const std::vector<float>& distances, const std::vector<int64_t>& lengths) {
    return std::vector<Tensor>{Tensor::FromValues<float>({std::ssize(distances), 1}, distances),
                               Tensor::FromValues<int64_t>({std::ssize(lengths)}, lengths)};
  };
  rate.Add(batch({1, 3}, {10, 2}));
  ErrorRate other;
  other.Add(batch({2}, {8}));
  EXPECT_EQ(rate.Value(), 4.0 / 12);
  rate.Merge(*other.State());
  EXPECT_EQ(rate.Value(), 6.0 / 20);
  rate.Reset();
  EXPECT_TRUE(std::isnan(rate.Value()));
  EXPECT_THAT(InvalidArgumentText([&] {
                rate.Add(batch({1, 2}, {1}));
              }),
              HasSubstr("error rate: distances are float32 [2, 1] and lengths int64 [1]"));
  EXPECT_THAT(InvalidArgumentText([&] { rate.Add({}); }), HasSubstr("0 tensors"));
}

// With random weights.
class LineRecognizerTest : public ::testing::Test {
 protected:
  void Save(int64_t characters, const std::string& alphabet) {
    const training::TrainingProgram program =
        BuildLineReader({.characters = characters, .filters = 2, .hidden = 3}, {}, 1);
    Executor executor;
    executor.Run(*program.startup);
    SaveInferenceModel(directory_.path(), program.model_inputs, program.model_outputs,
                       *program.test, executor.scope(),
                       {.files = {.params_filename = kCombinedParamsFile}});
    AtomicWriteFile(JoinPath(directory_.path(), kAlphabetFile), alphabet);
  }

  TempDirectory directory_;
};

TEST_F(LineRecognizerTest, ReadsEachImage) {
  Save(3, "abc");
  LineRecognizer recognizer(directory_.path());
  const std::vector<LineImage> images = {GeneratedLine(1, 0).image, GeneratedLine(1, 1).image};
  const std::vector<LineReading> both = recognizer.Read(images, 4);
  ASSERT_THAT(both, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    const LineReading alone = recognizer.Read({&images[i], 1}, 4)[0];
    EXPECT_EQ(alone.text, both[i].text);
    EXPECT_NEAR(alone.probability, both[i].probability, 1e-4 * both[i].probability);
    EXPECT_GT(both[i].probability, 0);
    EXPECT_LE(both[i].probability, 1);
    // A wider beam finds nothing less probable.
    EXPECT_GE(recognizer.Read({&images[i], 1}, 64)[0].probability, alone.probability * (1 - 1e-6));
  }
  EXPECT_THAT(recognizer.Read({}, 4), IsEmpty());
  EXPECT_THAT(InvalidArgumentText([&] { recognizer.Read(images, 0); }),
              HasSubstr("beam_width = 0"));
}

TEST_F(LineRecognizerTest, WantsTheAlphabetOfTheModel) {
  Save(3, "abcd");
  LineRecognizer recognizer(directory_.path());
  const LineImage image = GeneratedLine(1, 0).image;
  EXPECT_THAT(InvalidArgumentText([&] { recognizer.Read({&image, 1}, 4); }), HasSubstr("logits"));
}

}  // namespace
}  // namespace skiff::models
