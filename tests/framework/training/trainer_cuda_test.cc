// A whole training on a device: its checkpoints, its averages and the model that it saves are those
// of the CPU up to rounding, and either place goes on with the checkpoints of the other. Skipped if
// there is no device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/io/inference_model.h"
#include "framework/training/trainer.h"
#include "memory/places.h"
#include "models/common/classifier_program.h"
#include "models/mlp/mlp.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/image_training.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr float kTolerance = 1e-3f;

// A perceptron with dropout and averaged weights; an epoch has five steps.
class TrainerOnCuda : public ::testing::Test {
 protected:
  TrainerOnCuda()
      : images_(80, 24, 16),
        program_(models::BuildClassifier(
            images_.train_images,
            [](const Variable& image, int64_t classes) {
              return models::Mlp(image, {.hidden_units = 24, .classes = classes, .dropout = 0.1f});
            },
            {.learning_rate = 0.05f,
             .total_steps = 15,
             .averaging = AveragingKind::kEma,
             .ema_decay = 0.9f},
            5)) {}

  void SetUp() override {
    try {
      AllocatorOf(harness::CudaPlace());
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  std::string DirectoryOf(const std::string& name) { return directory_ / name; }

  // Trains up to a step (0: the end), from where the directory's last training stopped.
  TrainingResult Train(const std::string& name, Place place, int64_t stop, bool resume) {
    const TrainerOptions options = {.title = "test",
                                    .output_dir = DirectoryOf(name),
                                    .epochs = 3,
                                    .stop_after_steps = stop,
                                    .configuration = {{"seed", "5"}},
                                    .place = place};
    Trainer trainer(&program_, &images_.train, &images_.validation, options, &out_);
    if (resume) trainer.Resume();
    return trainer.Run();
  }

  // Returns what the saved model says of a few images.
  std::vector<float> ScoresOf(const std::string& name) {
    Executor executor;
    const InferenceModel model = LoadInferenceModel(DirectoryOf(name) + "/model", &executor.scope(),
                                                    {.params_filename = kCombinedParamsFile});
    Tensor images({2, 1, 12, 12}, DType::kFloat32);
    for (int64_t i = 0; i < images.element_count(); ++i)
      images.data<float>()[i] = 0.01f * static_cast<float>(i % 97);
    return executor.Run(*model.program, {{model.feed_names[0], images}}, model.fetch_names)[0]
        .ToVector<float>();
  }

  void ExpectSame(const std::string& name, const TrainingResult& found,
                  const TrainingResult& expected) {
    EXPECT_TRUE(found.finished);
    ASSERT_EQ(found.records.size(), expected.records.size());
    for (size_t i = 0; i < expected.records.size(); ++i) {
      const TrainingRecord& of_cpu = expected.records[i];
      EXPECT_NEAR(found.records[i].train.at("loss"), of_cpu.train.at("loss"), kTolerance);
      EXPECT_NEAR(found.records[i].validation.at("loss"), of_cpu.validation.at("loss"), kTolerance);
      EXPECT_NEAR(found.records[i].averaged.at("loss"), of_cpu.averaged.at("loss"), kTolerance);
    }
    EXPECT_THAT(ScoresOf(name),
                ::testing::Pointwise(::testing::FloatNear(kTolerance), ScoresOf("cpu")));
  }

  TempDirectory directory_;
  models::ImageTraining images_;
  models::ClassifierProgram program_;
  std::ostringstream out_;
};

TEST_F(TrainerOnCuda, TrainsAsOnTheCpu) {
  const TrainingResult expected = Train("cpu", Place::Cpu(), 0, false);
  EXPECT_LT(expected.records[2].train.at("loss"), expected.records[0].train.at("loss"));
  out_.str("");
  ExpectSame("cuda", Train("cuda", harness::CudaPlace(), 0, false), expected);
  EXPECT_THAT(out_.str(), Not(HasSubstr("warning")));
}

TEST_F(TrainerOnCuda, ResumesToTheSameBits) {
  const TrainingResult whole = Train("cuda", harness::CudaPlace(), 0, false);
  EXPECT_FALSE(Train("broken", harness::CudaPlace(), 7, false).finished);
  EXPECT_EQ(Train("broken", harness::CudaPlace(), 0, true).weights_hash, whole.weights_hash);
}

// There and back, within epochs.
TEST_F(TrainerOnCuda, EitherPlaceGoesOnWithTheCheckpointsOfTheOther) {
  const TrainingResult expected = Train("cpu", Place::Cpu(), 0, false);
  EXPECT_FALSE(Train("both", harness::CudaPlace(), 4, false).finished);
  EXPECT_FALSE(Train("both", Place::Cpu(), 8, true).finished);
  ExpectSame("both", Train("both", harness::CudaPlace(), 0, true), expected);
}

}  // namespace
}  // namespace skiff::training
