// Trainers on several ranks, which are threads: they end as one process does, and end together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/comm/threads_communicator.h"
#include "framework/io/file.h"
#include "framework/training/rank_agreement.h"
#include "framework/training/sharded_reader.h"
#include "framework/training/streaming_metric.h"
#include "framework/training/trainer.h"
#include "models/common/classifier_program.h"
#include "models/mlp/mlp.h"
#include "tests/harness/image_training.h"
#include "tests/harness/temp_directory.h"
#include "tests/harness/thread_count.h"

namespace skiff::training {
namespace {

using models::ClassifierProgram;
using models::ImageTraining;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr int64_t kBatch = 8;
constexpr int64_t kBatches = 10;  // of an epoch
constexpr int64_t kEpochs = 3;

// What becomes of a rank.
struct Outcome {
  TrainingResult result = {};
  std::string error = {};
  bool is_agreed = false;
  std::string printed = {};
};

// Everything that a training of one rank is made of. A test changes it before the trainer is made.
struct RankTraining {
  explicit RankTraining(const ImageTraining& images) : images(&images) {}

  const ImageTraining* images;
  World world = {};
  OptimizationOptions optimization = {.learning_rate = 0.05f, .warmup_updates = 2};
  TrainerOptions options = {.epochs = kEpochs, .configuration = {{"seed", "5"}}};
  std::optional<LastRun> validation = LastRun::kPartial;  // none: each rank evaluates all
  bool resumes = false;
  std::function<void(ClassifierProgram*)> change_program = {};
  std::function<std::unique_ptr<Reader>(std::unique_ptr<Reader>)> wrap_reader = {};
  int32_t ranks() const { return world.size; }

  std::unique_ptr<Reader> TrainReader() const {
    std::unique_ptr<Reader> reader = std::make_unique<SampleReader>(
        &images->train_source,
        SampleReaderOptions{.batch_size = kBatch, .shuffle = true, .drop_last = true, .seed = 5});
    if (world.size > 1) reader = std::make_unique<ShardedReader>(std::move(reader), world);
    return wrap_reader ? wrap_reader(std::move(reader)) : std::move(reader);
  }
  std::unique_ptr<Reader> ValidationReader() const {
    auto reader = std::make_unique<SampleReader>(&images->validation_source,
                                                 SampleReaderOptions{.batch_size = kBatch});
    if (world.size == 1 || !validation) return reader;
    return std::make_unique<ShardedReader>(std::move(reader), world, *validation);
  }
  ClassifierProgram Program() const {
    OptimizationOptions all = optimization;
    all.total_steps = kEpochs * kBatches / world.size;
    ClassifierProgram program = models::BuildClassifier(
        images->train_images,
        [](const Variable& image, int64_t classes) {
          return models::Mlp(image, {.hidden_units = 12, .classes = classes, .dropout = 0.1f});
        },
        all, 5);
    if (change_program) change_program(&program);
    return program;
  }
  TrainingResult Train(std::ostream* out) const {
    const std::unique_ptr<Reader> train = TrainReader();
    const std::unique_ptr<Reader> validation_reader = ValidationReader();
    const ClassifierProgram program = Program();
    Trainer trainer(&program, train.get(), validation_reader.get(), options, out);
    if (resumes) trainer.Resume();
    return trainer.Run();
  }
};

class TrainerRanks : public ::testing::Test {
 protected:
  // 50 validation images: 7 batches, the last of 2.
  TrainerRanks() : images_(kBatch * kBatches, 50, kBatch) {}

  // Changes the training of the rank before it begins.
  using Change = std::function<void(RankTraining*)>;

  // Trains on so many ranks in an output directory.
  std::vector<Outcome> Train(const std::string& name, int32_t size, const Change& change = {}) {
    std::vector<std::shared_ptr<Communicator>> ranks = MakeThreadRanks(size, {.seed = 3});
    std::vector<Outcome> outcomes(ranks.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      threads.emplace_back([&, rank, own = std::move(ranks[rank])]() mutable {
        const harness::ThreadCount one(1);
        RankTraining training(images_);
        training.world = own->world();
        training.options.output_dir = directory_ / name;
        training.options.compile.data_parallel.communicator = std::move(own);
        if (change) change(&training);
        Run(training, &outcomes[rank]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }
  // Trains in one process, without ranks.
  Outcome TrainAlone(const std::string& name, int64_t merge, const Change& change = {}) {
    const harness::ThreadCount one(1);
    RankTraining training(images_);
    training.options.output_dir = directory_ / name;
    training.optimization.gradient_merge_steps = merge;
    if (change) change(&training);
    Outcome outcome;
    Run(training, &outcome);
    return outcome;
  }
  static void Run(const RankTraining& training, Outcome* outcome) {
    std::ostringstream out;
    try {
      outcome->result = training.Train(&out);
    } catch (const std::exception& error) {
      outcome->error = error.what();
      outcome->is_agreed = dynamic_cast<const AgreedError*>(&error) != nullptr;
    }
    outcome->printed = out.str();
  }

  std::vector<std::string> Checkpoints(const std::string& name) const {
    return NamesIn(directory_ / name + "/checkpoints");
  }

  TempDirectory directory_;
  ImageTraining images_;
};

std::vector<std::string> Errors(const std::vector<Outcome>& outcomes) {
  std::vector<std::string> errors;
  for (const Outcome& outcome : outcomes) errors.push_back(outcome.error);
  return errors;
}

std::vector<std::string> Weights(const std::vector<Outcome>& outcomes) {
  EXPECT_THAT(Errors(outcomes), Each(""));
  std::vector<std::string> weights;
  for (const Outcome& outcome : outcomes) weights.push_back(outcome.result.weights_hash);
  return weights;
}

void ExpectEqualRecords(const std::vector<TrainingRecord>& found,
                        const std::vector<TrainingRecord>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].step, expected[i].step);
    EXPECT_EQ(found[i].learning_rate, expected[i].learning_rate);
    EXPECT_EQ(found[i].train, expected[i].train);
    EXPECT_EQ(found[i].validation, expected[i].validation);
    EXPECT_EQ(found[i].averaged, expected[i].averaged);
  }
}

// Also in every number of the log, where each epoch is a whole number of runs.
TEST_F(TrainerRanks, EndLikeOneProcessThatMergesGradients) {
  const Change averages = [](RankTraining* training) {
    training->optimization.averaging = AveragingKind::kEma;
    training->optimization.ema_decay = 0.9f;
  };
  for (const int32_t size : {1, 2, 5}) {
    SCOPED_TRACE(size);
    const Outcome one = TrainAlone(StrCat("alone", size), size, averages);
    const std::vector<Outcome> ranks = Train(StrCat("ranks", size), size, averages);
    EXPECT_THAT(Weights(ranks), Each(one.result.weights_hash));
    ExpectEqualRecords(ranks[0].result.records, one.result.records);
    EXPECT_EQ(ranks[0].result.best_epoch, one.result.best_epoch);
    EXPECT_EQ(NamesIn(directory_ / StrCat("ranks", size)),
              NamesIn(directory_ / StrCat("alone", size)));
  }
}

// Notes the batches that steps report.
class NotedBatches : public Callback {
 public:
  void OnStep(const StepReport& report, TrainingControl* /*control*/) override {
    batches_.push_back(report.batch);
  }
  const std::vector<int64_t>& batches() const { return batches_; }

 private:
  std::vector<int64_t> batches_;
};

// The run that ends an epoch may take batches of the next one.
TEST_F(TrainerRanks, GoOnAcrossTheEndsOfEpochs) {
  const Outcome one = TrainAlone("alone", 3);
  const auto noted = std::make_shared<NotedBatches>();
  const std::vector<Outcome> ranks = Train("ranks", 3, [&](RankTraining* training) {
    const bool is_noted = training->world.rank == 1;
    training->options.callbacks = {is_noted ? noted : std::make_shared<NotedBatches>()};
  });
  EXPECT_THAT(noted->batches(), ElementsAre(3, 6, 9, 10, 5, 8, 10, 4, 7, 10));
  EXPECT_THAT(Weights(ranks), Each(one.result.weights_hash));
  ASSERT_EQ(ranks[0].result.records.size(), 3u);
  EXPECT_EQ(ranks[0].result.records[0].step, 12);
  EXPECT_EQ(ranks[0].result.records[1].step, 21);
  EXPECT_EQ(ranks[0].result.records[2].step, 30);
  EXPECT_EQ(ranks[0].result.records[2].validation, one.result.records[2].validation);
}

// 30 batches are 7 runs of 4 ranks.
TEST_F(TrainerRanks, LeaveOutWhatFillsNoRunAtTheEnd) {
  const std::vector<Outcome> ranks = Train("ranks", 4);
  EXPECT_THAT(Errors(ranks), Each(""));
  ASSERT_EQ(ranks[0].result.records.size(), 3u);
  EXPECT_EQ(ranks[0].result.records[2].step, 28);
  // The second of two epochs begins behind two batches.
  const std::vector<Outcome> shorter =
      Train("shorter", 3, [](RankTraining* training) { training->options.epochs = 2; });
  EXPECT_THAT(Errors(shorter), Each(""));
  ASSERT_EQ(shorter[0].result.records.size(), 2u);
  EXPECT_EQ(shorter[0].result.records[1].step, 18);
}

TEST_F(TrainerRanks, OnlyRank0WritesAndTells) {
  const std::vector<Outcome> ranks =
      Train("ranks", 3, [](RankTraining* training) { training->options.stop_after_steps = 12; });
  EXPECT_THAT(Errors(ranks), Each(""));
  EXPECT_THAT(ranks[0].printed, HasSubstr("epoch 1/3  loss "));
  EXPECT_EQ(ranks[0].result.records.size(), 1u);
  EXPECT_EQ(ranks[1].printed + ranks[2].printed, "");
  // Unless it is a warning.
  const std::vector<Outcome> resumed = Train("ranks", 3, [](RankTraining* training) {
    training->resumes = true;
    omp_set_num_threads(2);
  });
  EXPECT_THAT(resumed[0].printed, HasSubstr("\nwarning: the checkpoint was made with threads = 1"));
  EXPECT_THAT(resumed[1].printed, StartsWith("rank 1: warning: the checkpoint was made with "));
}

// Stopped at several places, by one rank alone: the bits are those of the unbroken training.
TEST_F(TrainerRanks, ResumeToTheSameBits) {
  for (const int32_t size : {2, 3}) {
    SCOPED_TRACE(size);
    const std::vector<Outcome> whole = Train(StrCat("whole", size), size);
    const std::string name = StrCat("broken", size);
    for (const int64_t stop : {1, 8, 12, 13, 20, 29}) {
      const std::vector<Outcome> stopped = Train(name, size, [&](RankTraining* training) {
        training->resumes = stop > 1;
        training->options.stop_after_steps = stop;
      });
      EXPECT_THAT(Errors(stopped), Each(""));
      EXPECT_FALSE(stopped[0].result.finished);
    }
    const std::vector<Outcome> ended =
        Train(name, size, [](RankTraining* training) { training->resumes = true; });
    EXPECT_EQ(Weights(ended), Weights(whole));
    ExpectEqualRecords(ended[0].result.records, whole[0].result.records);
    EXPECT_TRUE(ended[1].result.finished);
  }
}

// Checkpoints don't show whether each rank keeps only a part of the optimizer's states.
TEST_F(TrainerRanks, SaveStatesWholeOfWhichEachKeepsAPart) {
  const std::vector<Outcome> whole = Train("whole", 3);
  std::vector<Outcome> ended;
  for (const auto& [stop, shards] : {std::pair(8, true), {16, false}, {20, true}, {0, true}}) {
    ended = Train("parts", 3, [&, stop = stop, shards = shards](RankTraining* training) {
      training->options.stop_after_steps = stop;
      training->resumes = stop != 8;
      training->options.compile.data_parallel.shard_optimizer = shards;
    });
    EXPECT_THAT(Errors(ended), Each(""));
  }
  EXPECT_EQ(Weights(ended), Weights(whole));
}

// A batch that one process merges, or that ranks share: checkpoints between two rounds fit both.
TEST_F(TrainerRanks, AnyNumberOfRanksResumes) {
  const Change whole_rounds = [](RankTraining* training) {
    training->options.whole_rounds = true;
    training->optimization.gradient_merge_steps = 6 / training->ranks();
  };
  const Outcome one = TrainAlone("alone", 6, whole_rounds);
  const auto run = [&](const std::string& name, int32_t size, int64_t stop, bool resumes) {
    const Change change = [&](RankTraining* training) {
      whole_rounds(training);
      training->options.stop_after_steps = stop;
      training->resumes = resumes;
    };
    return size == 1 ? std::vector{TrainAlone(name, 6, change)} : Train(name, size, change);
  };
  // With rounds of one run, sums are equal to those of one process.
  EXPECT_THAT(Errors(run("mixed", 1, 5, false)), Each(""));
  EXPECT_THAT(Checkpoints("mixed"), ElementsAre("save-000001-step-6"));
  EXPECT_THAT(Errors(run("mixed", 6, 16, true)), Each(""));
  EXPECT_THAT(Weights(run("mixed", 1, 0, true)), Each(one.result.weights_hash));
  EXPECT_THAT(Errors(run("ranks", 6, 5, false)), Each(""));
  EXPECT_THAT(Weights(run("ranks", 1, 0, true)), Each(one.result.weights_hash));
  // Other ranks see the same batches, in the same updates.
  EXPECT_THAT(Errors(run("other", 2, 5, false)), Each(""));
  EXPECT_THAT(Errors(run("other", 3, 16, true)), Each(""));
  const std::vector<Outcome> other = run("other", 6, 0, true);
  EXPECT_THAT(Errors(other), Each(""));
  ASSERT_EQ(other[0].result.records.size(), 3u);
  EXPECT_NEAR(other[0].result.records[2].validation.at("loss"),
              one.result.records[2].validation.at("loss"), 1e-4);
}

// Rounds of two runs of two ranks: each epoch of ten batches ends within one.
TEST_F(TrainerRanks, SaveBetweenRoundsOnly) {
  const Change merges = [](RankTraining* training) {
    training->optimization.gradient_merge_steps = 2;
  };
  const std::vector<Outcome> whole = Train("whole", 2, merges);
  EXPECT_THAT(Errors(whole), Each(""));
  EXPECT_THAT(Checkpoints("whole"), ElementsAre("save-000002-step-20", "save-000003-step-30"));
  for (const int64_t stop : {3, 9, 17}) {
    const std::vector<Outcome> stopped = Train("broken", 2, [&](RankTraining* training) {
      merges(training);
      training->resumes = stop > 3;
      training->options.stop_after_steps = stop;
      training->options.save_every_steps = 3;
    });
    EXPECT_THAT(Errors(stopped), Each(""));
    EXPECT_THAT(Checkpoints("broken").back(),
                ::testing::EndsWith(StrCat("-step-", stop / 4 * 4 + 4)));
  }
  const std::vector<Outcome> ended = Train("broken", 2, [&](RankTraining* training) {
    merges(training);
    training->resumes = true;
  });
  EXPECT_EQ(Weights(ended), Weights(whole));
  ExpectEqualRecords(ended[0].result.records, whole[0].result.records);
}

// The gradients of one process within a round are those of no rank.
TEST_F(TrainerRanks, RefuseACheckpointWithinARound) {
  TrainAlone("run", 4, [](RankTraining* training) { training->options.stop_after_steps = 7; });
  const std::vector<Outcome> ranks = Train("run", 2, [](RankTraining* training) {
    training->optimization.gradient_merge_steps = 2;
    training->resumes = true;
  });
  EXPECT_THAT(Errors(ranks),
              Each(HasSubstr("the checkpoint was made 3 steps after the last update, within a "
                             "round of gradient_merge")));
  EXPECT_TRUE(ranks[1].is_agreed);
}

// Ends early within a round, which it first finishes.
TEST_F(TrainerRanks, StopEarlyTogether) {
  const std::vector<Outcome> ranks = Train("run", 2, [](RankTraining* training) {
    training->optimization.gradient_merge_steps = 2;
    training->optimization.learning_rate = 0;
    training->options.early_stop_epochs = 1;
  });
  EXPECT_THAT(Errors(ranks), Each(""));
  for (const Outcome& rank : ranks) EXPECT_TRUE(rank.result.finished);
  EXPECT_EQ(ranks[0].result.records.size(), 2u);
  EXPECT_THAT(ranks[0].printed, HasSubstr("stopped early: "));
}

// A callback that stops the training on one rank: after a step, or after the epoch that it ends.
class StopAt : public Callback {
 public:
  explicit StopAt(int64_t step) : step_(step) {}
  void OnStep(const StepReport& report, TrainingControl* control) override {
    if (report.step == step_) control->Stop();
  }
  void OnEpoch(const TrainingRecord& record, TrainingControl* control) override {
    if (record.step == -step_) control->Stop();
  }

 private:
  int64_t step_;
};

TEST_F(TrainerRanks, StopTogether) {
  const std::vector<Outcome> ranks = Train("run", 3, [](RankTraining* training) {
    const int64_t step = training->world.rank == 2 ? 6 : -1;
    training->options.callbacks = {std::make_shared<StopAt>(step)};
  });
  EXPECT_THAT(Errors(ranks), Each(""));
  for (const Outcome& rank : ranks) EXPECT_FALSE(rank.result.finished);
  EXPECT_THAT(Checkpoints("run"), ElementsAre("save-000001-step-6"));
}

TEST_F(TrainerRanks, StopTogetherAtTheEndOfAnEpoch) {
  const Outcome one = TrainAlone("alone", 5, [](RankTraining* training) {
    training->options.callbacks = {std::make_shared<StopAt>(-20)};
  });
  const std::vector<Outcome> ranks = Train("run", 5, [](RankTraining* training) {
    const int64_t step = training->world.rank == 2 ? -20 : 0;
    training->options.callbacks = {std::make_shared<StopAt>(step)};
  });
  EXPECT_THAT(Weights(ranks), Each(one.result.weights_hash));
  EXPECT_FALSE(ranks[0].result.finished);
  EXPECT_EQ(Checkpoints("run"), Checkpoints("alone"));
}

// A callback that does on a rank what it doesn't do on the other ranks.
class OnOneRank : public Callback {
 public:
  enum class What { kChangesAWeight, kKeepsAState };
  OnOneRank(What what, bool is_the_rank) : what_(what), is_the_rank_(is_the_rank) {}

  void OnEpoch(const TrainingRecord& /*record*/, TrainingControl* control) override {
    if (what_ != What::kChangesAWeight || !is_the_rank_) return;
    Tensor weight = CopyToCpu(control->scope().Get("fc_0.w_0"));
    weight.values<float>()[0] += 1;
    control->scope().Assign("fc_0.w_0", weight);
  }
  std::map<std::string, std::string> State() const override {
    if (what_ != What::kKeepsAState) return {};
    return {{"batches", is_the_rank_ ? "7" : "6"}};
  }
  std::string Name() const override { return "OnOneRank"; }

 private:
  const What what_;
  const bool is_the_rank_;
};

TEST_F(TrainerRanks, SaveNothingThatTheyDoNotHaveInCommon) {
  const auto run = [&](const std::string& name, OnOneRank::What what) {
    return Train(name, 3, [&](RankTraining* training) {
      training->options.callbacks = {std::make_shared<OnOneRank>(what, training->world.rank == 1)};
    });
  };
  const std::vector<Outcome> weights = run("weights", OnOneRank::What::kChangesAWeight);
  EXPECT_THAT(Errors(weights), Each(StartsWith("rank 1: the hash of the weights is ")));
  EXPECT_TRUE(weights[0].is_agreed);
  EXPECT_FALSE(PathExists(directory_ / "weights/checkpoints"));
  EXPECT_THAT(Errors(run("states", OnOneRank::What::kKeepsAState)),
              Each("rank 1: the state of OnOneRank, batches is 7, rank 0: 6"));
}

TEST_F(TrainerRanks, ShareEvaluations) {
  const auto change = [](std::optional<LastRun> validation) {
    return [validation](RankTraining* training) {
      training->validation = validation;
      training->options.epochs = 1;
      training->change_program = [](ClassifierProgram* program) {
        const std::vector<std::string> streamed = {program->model_outputs[0], "label"};
        program->metrics.push_back({.name = "f1",
                                    .streaming = std::make_shared<ConfusionMatrix>(10),
                                    .streamed = streamed});
        program->metrics.push_back(
            {.name = "top3", .streaming = std::make_shared<TopKAccuracy>(3), .streamed = streamed});
      };
    };
  };
  const Outcome one = TrainAlone("alone", 5, change({}));
  ASSERT_EQ(one.error, "");
  for (const auto& validation : {std::optional<LastRun>(), std::optional(LastRun::kPartial)}) {
    const std::vector<Outcome> ranks =
        Train(StrCat("ranks", validation.has_value()), 5, change(validation));
    EXPECT_THAT(Errors(ranks), Each(""));
    ASSERT_EQ(ranks[0].result.records.size(), 1u);
    EXPECT_EQ(ranks[0].result.records[0].validation, one.result.records[0].validation);
  }
}

// Metric of a user's, without a state.
class Batches : public StreamingMetric {
 public:
  void Reset() override { batches_ = 0; }
  void Add(std::span<const Tensor> /*values*/) override { ++batches_; }
  double Value() const override { return batches_; }

 private:
  double batches_ = 0;
};

TEST_F(TrainerRanks, ShareNoEvaluationThatTheyCantMerge) {
  const auto change = [](std::optional<LastRun> validation) {
    return [validation](RankTraining* training) {
      training->validation = validation;
      training->options.epochs = 1;
      training->change_program = [](ClassifierProgram* program) {
        program->metrics.push_back({.name = "batches",
                                    .streaming = std::make_shared<Batches>(),
                                    .streamed = {program->model_outputs[0]}});
      };
    };
  };
  EXPECT_THAT(Errors(Train("shared", 2, change(LastRun::kPartial))),
              Each(StartsWith("the metric \"batches\" has no State that 2 ranks could merge")));
  const std::vector<Outcome> ranks = Train("whole", 2, change({}));
  EXPECT_THAT(Errors(ranks), Each(""));
  ASSERT_EQ(ranks[0].result.records.size(), 1u);
  EXPECT_EQ(ranks[0].result.records[0].validation.at("batches"), 7);
}

// Each rank says the same.
TEST_F(TrainerRanks, NameWhatDiffersAtTheStart) {
  const auto expect = [&](const Change& change, const std::string& message) {
    SCOPED_TRACE(message);
    const std::vector<Outcome> ranks = Train("run", 3, [&](RankTraining* training) {
      if (training->world.rank == 2) change(training);
    });
    EXPECT_THAT(Errors(ranks), Each(HasSubstr(message)));
    for (const Outcome& rank : ranks) EXPECT_TRUE(rank.is_agreed);
    EXPECT_FALSE(PathExists(directory_ / "run"));
  };
  expect([](RankTraining* training) { training->options.configuration["seed"] = "6"; },
         "rank 2: seed is 6, rank 0: 5");
  expect(
      [](RankTraining* training) {
        training->options.file_settings["data"] = {.contents = {{"contents of a.txt", "2 bytes"}}};
      },
      "rank 2: data is \"\", rank 0: not there");
  expect([](RankTraining* training) { training->options.configuration.clear(); },
         "rank 2: seed is not there, rank 0: 5");
  expect([](RankTraining* training) { training->options.save_every_steps = 4; },
         "rank 2: save_every is 4, rank 0: 0");
  expect([](RankTraining* training) { training->validation.reset(); },
         "rank 2: the number of ranks that share the validation is 1, rank 0: 3");
  expect(
      [](RankTraining* training) { training->options.compile.passes.also = {"merge_optimizer"}; },
      "rank 2: the passes to run also is merge_optimizer, rank 0: ");
  expect([](RankTraining* /*training*/) { omp_set_num_threads(2); },
         "rank 2: the number of threads is 2, rank 0: 1");
  expect([](RankTraining* training) { training->optimization.weight_decay = 0; },
         " of the main program is ");
  expect(
      [](RankTraining* training) {
        training->change_program = [](ClassifierProgram* program) { program->startup->seed = 9; };
      },
      "rank 2: the hash of the weights and states is ");
}

TEST_F(TrainerRanks, NameTheRankThatCannotResume) {
  Train("run", 2, [](RankTraining* training) { training->options.stop_after_steps = 4; });
  const auto resume = [&](const std::string& other) {
    return Train("run", 2, [&](RankTraining* training) {
      training->resumes = true;
      if (training->world.rank == 1) training->options.output_dir = directory_ / other;
    });
  };
  const std::vector<Outcome> nowhere = resume("nowhere");
  EXPECT_THAT(Errors(nowhere),
              Each("rank 1: " + (directory_ / "nowhere") + "/checkpoints holds no checkpoint"));
  EXPECT_TRUE(nowhere[0].is_agreed);
  Train("longer", 2, [](RankTraining* training) { training->options.stop_after_steps = 6; });
  EXPECT_THAT(Errors(resume("longer")),
              Each("rank 1: the newest checkpoint is save-000001-step-6, rank 0: "
                   "save-000001-step-4"));
  const std::vector<Outcome> mixed = Train(
      "run", 2, [&](RankTraining* training) { training->resumes = training->world.rank == 0; });
  EXPECT_THAT(Errors(mixed), Each("rank 1: the call is Run, rank 0: Resume"));
}

// The directory is rank 0's alone, but its Error ends all.
TEST_F(TrainerRanks, RefuseTheDirectoryOfATraining) {
  Train("run", 2, [](RankTraining* training) { training->options.epochs = 1; });
  const std::vector<Outcome> again = Train("run", 2);
  EXPECT_THAT(Errors(again), Each(HasSubstr(" holds a training: resume it, or choose another")));
  EXPECT_TRUE(again[1].is_agreed);
}

// Changes the batches that a rank reads.
class ChangedReader : public Reader {
 public:
  ChangedReader(std::unique_ptr<Reader> reader, std::function<void(int64_t, Batch*)> change)
      : reader_(std::move(reader)), change_(std::move(change)) {}

  void StartEpoch(int64_t epoch) override { reader_->StartEpoch(epoch); }
  bool Next(Batch* batch) override {
    if (!reader_->Next(batch)) return false;
    change_(count_++, batch);
    return true;
  }
  ReaderState state() const override { return reader_->state(); }
  void Restore(const ReaderState& state) override { reader_->Restore(state); }
  int64_t batches_in_epoch() const override { return reader_->batches_in_epoch(); }
  int32_t ranks() const override { return reader_->ranks(); }

 private:
  std::unique_ptr<Reader> reader_;
  std::function<void(int64_t, Batch*)> change_;
  int64_t count_ = 0;
};

TEST_F(TrainerRanks, AFailureOfOneRankEndsAll) {
  const auto run = [&](const std::string& name, const std::function<void(Batch*)>& spoil) {
    ::testing::internal::CaptureStderr();
    std::vector<Outcome> ranks = Train(name, 3, [&](RankTraining* training) {
      training->options.save_every_steps = 1;
      if (training->world.rank != 1) return;
      training->wrap_reader = [&](std::unique_ptr<Reader> reader) {
        return std::make_unique<ChangedReader>(std::move(reader), [&](int64_t count, Batch* batch) {
          if (count == 2) spoil(batch);
        });
      };
    });
    ranks[1].printed = ::testing::internal::GetCapturedStderr();
    return ranks;
  };
  const std::vector<Outcome> nan = run("nan", [](Batch* batch) {
    batch->feeds[0].second.values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  });
  EXPECT_THAT(nan[1].error, StartsWith("the loss is nan at step 8, learning rate "));
  EXPECT_EQ(nan[1].printed, "rank 1: after step 6: " + nan[1].error + "\n");
  for (const size_t other : {0, 2}) {
    EXPECT_THAT(nan[other].error, AllOf(HasSubstr("rank 1"), HasSubstr("aborted")));
    EXPECT_FALSE(nan[other].is_agreed);
  }
  // The last checkpoint is from before.
  EXPECT_THAT(Checkpoints("nan"), ElementsAre("save-000001-step-3", "save-000002-step-6"));
  const std::vector<Outcome> data =
      run("data", [](Batch* /*batch*/) { Throw(ErrorCode::kDataLoss, "a torn file"); });
  EXPECT_EQ(data[1].printed, "rank 1: after step 6: a torn file\n");
}

TEST_F(TrainerRanks, NeedAReaderOfTheirOwn) {
  EXPECT_THAT(Errors(Train("run", 2, [](RankTraining* training) { training->world = {}; })),
              Each("the reader of the training's batches is shared by 1 ranks, expected 2: see "
                   "ShardedReader"));
  EXPECT_THAT(Errors(Train("run", 2, [](RankTraining* training) { training->world.size = 4; })),
              Each("the reader of the training's batches is shared by 4 ranks, expected 2: see "
                   "ShardedReader"));
}

}  // namespace
}  // namespace skiff::training
