#include "models/common/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sstream>

#include "framework/base/error.h"
#include "models/common/generated_images.h"
#include "models/mlp/mlp.h"
#include "tests/models/common/scratch_folder.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;

// A small perceptron with dropout, whose batches don't divide the validation set.
class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest()
      : train_images_(GenerateImages({.images = 320, .channels = 1, .height = 12, .width = 12})),
        validation_images_(
            GenerateImages({.images = 50, .channels = 1, .height = 12, .width = 12, .stream = 1})),
        train_source_(&train_images_, MeasureNormalization(train_images_), {.padding = 1}, 5),
        validation_source_(&validation_images_, MeasureNormalization(train_images_)),
        train_(&train_source_, {.batch_size = 32, .shuffle = true, .drop_last = true, .seed = 5}),
        validation_(&validation_source_, {.batch_size = 32}),
        program_(BuildClassifier(
            train_images_,
            [](const Variable& image, int64_t classes) {
              return Mlp(image, {.hidden_units = 24, .classes = classes, .dropout = 0.1f});
            },
            {.learning_rate = 0.05f, .total_steps = 40, .warmup_steps = 5}, 5)) {}

  TrainerOptions Options(const std::string& name) {
    return {.title = "test",
            .output_dir = directory_ / name,
            .epochs = 4,
            .configuration = {{"seed", "5"}}};
  }
  Trainer Make(const TrainerOptions& options) {
    return Trainer(&program_, &train_, &validation_, options, &out_);
  }

  ScratchFolder directory_;
  ImageDataset train_images_;
  ImageDataset validation_images_;
  ImageSource train_source_;
  ImageSource validation_source_;
  BatchReader train_;
  BatchReader validation_;
  ClassifierProgram program_;
  std::ostringstream out_;
};

TEST_F(TrainerTest, LowersTheLossAndWritesItsFiles) {
  const TrainerOptions options = Options("run");
  const TrainingResult result = Make(options).Run();
  ASSERT_TRUE(result.finished);
  ASSERT_EQ(result.records.size(), 4u);
  EXPECT_LT(result.records[3].train_loss, result.records[0].train_loss);
  EXPECT_EQ(result.records[3].step, 40);
  for (const char* file :
       {"checkpoints", "model/__model__", "training_log.jsonl", "learning_curve.svg"}) {
    EXPECT_TRUE(std::filesystem::exists(options.output_dir + "/" + file)) << file;
  }
}

TEST_F(TrainerTest, ResumesToTheSameBitsFromWithinAnEpoch) {
  const TrainingResult whole = Make(Options("whole")).Run();
  TrainerOptions options = Options("broken");
  for (const int64_t stop : {7, 20, 33}) {
    options.stop_after_steps = stop;
    Trainer trainer = Make(options);
    if (stop > 7) trainer.Resume();
    EXPECT_FALSE(trainer.Run().finished);
  }
  options.stop_after_steps = 0;
  Trainer last = Make(options);
  last.Resume();
  const TrainingResult resumed = last.Run();
  EXPECT_TRUE(resumed.finished);
  EXPECT_EQ(resumed.weights_hash, whole.weights_hash);
  ASSERT_EQ(resumed.records.size(), whole.records.size());
  for (size_t i = 0; i < whole.records.size(); ++i) {
    EXPECT_EQ(resumed.records[i].train_loss, whole.records[i].train_loss);
    EXPECT_EQ(resumed.records[i].validation_loss, whole.records[i].validation_loss);
    EXPECT_EQ(resumed.records[i].learning_rate, whole.records[i].learning_rate);
  }
}

TEST_F(TrainerTest, RefusesToResumeWithAnotherConfiguration) {
  TrainerOptions options = Options("run");
  options.stop_after_steps = 3;
  Make(options).Run();
  options.configuration["seed"] = "6";
  try {
    Make(options).Resume();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("seed = 5, but now it is 6"));
  }
}

TEST_F(TrainerTest, EvaluatesWhatACheckpointHolds) {
  const TrainerOptions options = Options("run");
  const TrainingResult result = Make(options).Run();
  Trainer evaluator = Make(options);
  evaluator.Resume();
  EXPECT_EQ(evaluator.Evaluate().loss, result.records.back().validation_loss);
  EXPECT_EQ(evaluator.WeightsHash(), result.weights_hash);
}

TEST_F(TrainerTest, ResumeWithoutACheckpointIsAnError) {
  EXPECT_THROW(Make(Options("nothing")).Resume(), Error);
}

}  // namespace
}  // namespace skiff::models
