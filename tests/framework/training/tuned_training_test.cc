// Trainings whose kernels a tuner chooses, by times that the tests make up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/builder/nn.h"
#include "framework/io/checkpoint.h"
#include "framework/op/kernel.h"
#include "framework/training/sharded_reader.h"
#include "framework/training/trainer.h"
#include "framework/tuning/kernel_tuner.h"
#include "framework/tuning/tuning_key.h"
#include "models/common/classifier_program.h"
#include "tests/harness/image_training.h"
#include "tests/harness/temp_directory.h"
#include "tests/harness/thread_ranks.h"

namespace skiff::training {
namespace {

using models::BuildClassifier;
using models::ClassifierProgram;
using models::ImageTraining;
using ::testing::HasSubstr;
using ::testing::Not;

// The second convolution has two kernels, "winograd" by the rule and "onednn", which differ in the
// last bits.
Variable TwoConvolutions(const Variable& image, int64_t classes) {
  const Variable first =
      layers::Conv2d(image, {.filters = 16, .kernel = 3, .padding = 1, .act = "relu"});
  const Variable second =
      layers::Conv2d(first, {.filters = 16, .kernel = 3, .padding = 1, .act = "relu"});
  return layers::Fc(second, classes, {.num_flatten_dims = 1});
}

ClassifierProgram TwoConvolutionsIn(const ImageTraining& images) {
  return BuildClassifier(images.train_images, TwoConvolutions,
                         {.learning_rate = 0.05f, .total_steps = 8}, 5);
}

// The batches of a rank.
struct ShardedImages {
  ShardedImages(const ImageTraining& images, const World& world) {
    const auto reader = [](const models::ImageSource* source) {
      return std::make_unique<SampleReader>(source, SampleReaderOptions{.batch_size = 16});
    };
    train = std::make_unique<ShardedReader>(reader(&images.train_source), world);
    validation = std::make_unique<ShardedReader>(reader(&images.validation_source), world,
                                                 LastRun::kPartial);
  }

  std::unique_ptr<Reader> train;
  std::unique_ptr<Reader> validation;
};

class TunedTrainingTest : public ::testing::Test {
 protected:
  TunedTrainingTest() : images_(64, 20, 16), program_(TwoConvolutionsIn(images_)) {}

  void SetUp() override {
    if (PreferredChannelBlock() == 1) GTEST_SKIP() << "one kernel only on this processor";
  }

  // Finds `fastest` to be so wherever it is a candidate.
  std::shared_ptr<KernelTuner> TunerFor(const std::string& fastest) {
    const auto timer = [fastest, this](const TuningRequest&,
                                       const std::vector<const KernelDef*>& kernels) {
      timed_.fetch_add(1);
      std::vector<double> times;
      for (const KernelDef* kernel : kernels) times.push_back(kernel->name == fastest ? 1 : 2);
      return times;
    };
    return std::make_shared<KernelTuner>(DefaultOpRegistry(), KernelTunerOptions{.timer = timer});
  }

  Trainer Make(const std::string& name, std::shared_ptr<KernelTuner> tuner, int64_t stop = 0) {
    return Trainer(&program_, &images_.train, &images_.validation,
                   {.title = "test",
                    .output_dir = directory_ / name,
                    .epochs = 2,
                    .stop_after_steps = stop,
                    .compile = {.tuner = std::move(tuner)}},
                   &out_);
  }
  TrainingResult Train(const std::string& name, std::shared_ptr<KernelTuner> tuner,
                       int64_t stop = 0) {
    return Make(name, std::move(tuner), stop).Run();
  }
  TrainingResult Resume(const std::string& name, std::shared_ptr<KernelTuner> tuner,
                        int64_t stop = 0) {
    Trainer trainer = Make(name, std::move(tuner), stop);
    trainer.Resume();
    return trainer.Run();
  }
  static void ExpectSame(const TrainingResult& a, const TrainingResult& b) {
    EXPECT_EQ(a.weights_hash, b.weights_hash);
    ASSERT_EQ(a.records.size(), 2u);
    ASSERT_EQ(b.records.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(a.records[i].train.at("loss"), b.records[i].train.at("loss"));
      EXPECT_EQ(a.records[i].validation.at("loss"), b.records[i].validation.at("loss"));
    }
  }

  // Puts another checkpoint on top of the newest, whose kernel choices `edit` has changed.
  void EditChoices(const std::string& name, const std::function<void(std::string*)>& edit) {
    const std::string checkpoints = directory_ / name + "/checkpoints";
    Scope scope;
    LoadedCheckpoint loaded = LoadLatestCheckpoint(checkpoints, *program_.main, &scope);
    edit(&loaded.state.at("kernel_choices"));
    SaveCheckpoint(checkpoints, *program_.main, scope, loaded.step, loaded.state);
  }

  TempDirectory directory_;
  ImageTraining images_;
  ClassifierProgram program_;
  std::ostringstream out_;
  std::atomic<int> timed_{0};
};

TEST_F(TunedTrainingTest, ResumesToTheSameBitsThoughTimesWouldChooseOtherKernelsNow) {
  const TrainingResult whole = Train("whole", TunerFor("onednn"));
  // What the choice decides.
  ASSERT_NE(Train("other", TunerFor("winograd")).weights_hash, whole.weights_hash);
  Train("broken", TunerFor("onednn"), 2);
  Resume("broken", TunerFor("winograd"), 5);
  ExpectSame(Resume("broken", TunerFor("winograd")), whole);
}

TEST_F(TunedTrainingTest, KeepsItsKernelsWhenResumedWithoutATuner) {
  const TrainingResult whole = Train("whole", TunerFor("onednn"));
  Train("broken", TunerFor("onednn"), 2);
  // The second time from a checkpoint that was made so.
  Resume("broken", nullptr, 5);
  ExpectSame(Resume("broken", nullptr), whole);
}

TEST_F(TunedTrainingTest, StaysUntunedWhenResumedWithATuner) {
  const TrainingResult whole = Train("whole", nullptr);
  Train("broken", nullptr, 2);
  EXPECT_THAT(out_.str(), Not(HasSubstr("warning")));
  ExpectSame(Resume("broken", TunerFor("onednn")), whole);
  EXPECT_THAT(out_.str(), HasSubstr("\nwarning: kernels aren't tuned, since those of the "
                                    "checkpoint's training weren't\n"));
  EXPECT_EQ(timed_, 0);
}

// Those of the evaluation too, of whole batches and of the last one.
TEST_F(TunedTrainingTest, MakesAllChoicesBeforeTheFirstStep) {
  Train("broken", TunerFor("onednn"), 1);
  const int timed = timed_.load();
  EXPECT_GT(timed, 2);
  EXPECT_THAT(out_.str(), HasSubstr(" kernels tuned, "));
  EXPECT_THAT(out_.str(), Not(HasSubstr(" tuned, 0 of them timed now, ")));
  Resume("broken", TunerFor("onednn"));
  EXPECT_THAT(out_.str(), HasSubstr(" tuned, 0 of them timed now, "));
  EXPECT_EQ(timed_, timed);
}

TEST_F(TunedTrainingTest, EvaluatesACheckpointWithItsKernels) {
  Train("run", TunerFor("onednn"));
  Trainer tuned = Make("run", TunerFor("winograd"));
  tuned.LoadForEvaluation();
  timed_ = 0;
  const double loss = tuned.Evaluate().at("loss");
  EXPECT_EQ(timed_, 0);
  Trainer plain = Make("run", nullptr);
  plain.LoadForEvaluation();
  EXPECT_EQ(plain.Evaluate().at("loss"), loss);
}

TEST_F(TunedTrainingTest, NamesAKernelThatIsGone) {
  Train("run", TunerFor("onednn"), 2);
  EditChoices("run", [](std::string* choices) {
    const size_t line = choices->find("\nonednn\t");
    choices->replace(choices->find("onednn=", line), 6, "gone");
    choices->replace(line + 1, 6, "gone");
  });
  Trainer trainer = Make("run", nullptr);
  trainer.Resume();
  EXPECT_THAT(ErrorOf([&] { trainer.Run(); }).what(),
              HasSubstr("the choices of an earlier run name the kernel \"gone\""));
}

// Choices of another version, say.
TEST_F(TunedTrainingTest, GoesByRuleWhereTheCheckpointKnowsNothing) {
  Train("run", TunerFor("onednn"), 2);
  EditChoices("run", [](std::string* choices) { choices->erase(choices->find("\n\n") + 2); });
  timed_ = 0;
  Resume("run", nullptr);
  EXPECT_EQ(timed_, 0);
  EXPECT_THAT(out_.str(),
              HasSubstr("warning: the choices of an earlier run don't know conv2d [16, "));
  EXPECT_THAT(out_.str(), HasSubstr("and perhaps others: by rule, so that results may differ from "
                                    "that run's\n"));
}

TEST_F(TunedTrainingTest, RefusesDamagedChoices) {
  Train("run", TunerFor("onednn"), 2);
  EditChoices("run", [](std::string* choices) { choices->erase(0, 1); });
  Trainer trainer = Make("run", nullptr);
  const std::string hash = trainer.WeightsHash();
  EXPECT_THAT(ErrorOf([&] { trainer.Resume(); }).what(),
              HasSubstr("the checkpoint's state, kernel_choices, line 1: expected \"skiff"));
  EXPECT_EQ(trainer.WeightsHash(), hash);
}

// Other ranks find other kernels to be fastest, and take rank 0's nevertheless.
TEST_F(TunedTrainingTest, RanksTakeTheKernelsOfRank0) {
  std::vector<std::shared_ptr<KernelTuner>> tuners = {TunerFor("onednn"), TunerFor("winograd")};
  std::vector<std::string> weights(2);
  std::vector<std::ostringstream> out(2);
  auto ranks = MakeThreadRanks(2);
  std::vector<ClassifierProgram> programs;
  for (int i = 0; i < 2; ++i) programs.push_back(TwoConvolutionsIn(images_));
  const auto errors = RunOnRanks(ranks, [&](Communicator* own) {
    const auto rank = static_cast<size_t>(own->world().rank);
    const ShardedImages images(images_, own->world());
    Trainer trainer(
        &programs[rank], images.train.get(), images.validation.get(),
        {.output_dir = directory_ / "ranks",
         .compile = {.tuner = tuners[rank], .data_parallel = {.communicator = ranks[rank]}}},
        &out[rank]);
    weights[rank] = trainer.Run().weights_hash;
  });
  EXPECT_THAT(errors, ::testing::Each(""));
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(PrintKernelChoices(tuners[1]->choices()), PrintKernelChoices(tuners[0]->choices()));
  EXPECT_THAT(PrintKernelChoices(tuners[1]->choices()), HasSubstr("onednn\t"));
}

}  // namespace
}  // namespace skiff::training
