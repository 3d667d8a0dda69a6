#include "framework/training/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <sstream>

#include "framework/base/error.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/io/checkpoint.h"
#include "framework/io/file.h"
#include "framework/io/file_lock.h"
#include "framework/io/inference_model.h"
#include "framework/io/parameters.h"
#include "framework/io/weights_hash.h"
#include "framework/training/training_log.h"
#include "models/common/classifier_program.h"
#include "models/mlp/mlp.h"
#include "tests/harness/full_disk.h"
#include "tests/harness/image_training.h"
#include "tests/harness/temp_directory.h"
#include "tests/harness/thread_count.h"

namespace skiff::training {
namespace {

using models::BuildClassifier;
using models::ClassifierProgram;
using models::ImageTraining;
using models::Mlp;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A small perceptron with dropout, whose batches don't divide the validation set.
class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest()
      : images_(320, 50, 32),
        program_(Perceptron({.learning_rate = 0.05f, .total_steps = 40, .warmup_updates = 5})) {}

  ClassifierProgram Perceptron(const OptimizationOptions& options) const {
    return BuildClassifier(
        images_.train_images,
        [](const Variable& image, int64_t classes) {
          return Mlp(image, {.hidden_units = 24, .classes = classes, .dropout = 0.1f});
        },
        options, 5);
  }

  TrainerOptions Options(const std::string& name) {
    return {.title = "test",
            .output_dir = directory_ / name,
            .epochs = 4,
            .configuration = {{"seed", "5"}}};
  }
  Trainer Make(const TrainerOptions& options) {
    return Trainer(&program_, &images_.train, &images_.validation, options, &out_);
  }

  TempDirectory directory_;
  ImageTraining images_;
  ClassifierProgram program_;
  std::ostringstream out_;
};

TEST_F(TrainerTest, LowersTheLossAndWritesItsFiles) {
  const TrainerOptions options = Options("run");
  const TrainingResult result = Make(options).Run();
  ASSERT_TRUE(result.finished);
  ASSERT_EQ(result.records.size(), 4u);
  EXPECT_LT(result.records[3].train.at("loss"), result.records[0].train.at("loss"));
  EXPECT_EQ(result.records[3].step, 40);
  for (const char* file : {"checkpoints", "model/__model__", "model/__params__",
                           "training_log.jsonl", "learning_curve.svg"}) {
    EXPECT_TRUE(std::filesystem::exists(options.output_dir + "/" + file)) << file;
  }
}

// The outputs of gelu, once, as the products take most of the time and those outputs most of the
// memory.
TEST_F(TrainerTest, SaysWhatItComputesAgain) {
  constexpr int64_t kWidth = 512;
  ImageTraining images(kWidth, 16, kWidth);
  const ClassifierProgram program = BuildClassifier(
      images.train_images,
      [](const Variable& image, int64_t classes) {
        Variable hidden = image;
        for (int layer = 0; layer < 3; ++layer)
          hidden = layers::Fc(hidden, kWidth, {.num_flatten_dims = 1, .act = "gelu"});
        return layers::Fc(hidden, classes);
      },
      {.total_steps = 2}, 5);
  TrainerOptions options = Options("cheap_ops");
  options.compile.memory.recompute = Recompute::kCheapOps;
  options.epochs = 2;
  const auto train = [&] {
    out_.str("");
    return Trainer(&program, &images.train, &images.validation, options, &out_).Run().weights_hash;
  };
  const std::string weights = train();
  const std::string printed = out_.str();
  const std::string said = " ops are computed again, which saves ";
  EXPECT_THAT(printed, ContainsRegex("memory: [0-9]+" + said +
                                     "[0-9.]+ MiB for about [0-9.]+ % of a step\n"));
  EXPECT_EQ(printed.find(said), printed.rfind(said)) << "once";
  options.output_dir = directory_ / "nothing";
  options.compile.memory.recompute = Recompute::kNothing;
  EXPECT_EQ(train(), weights);
  EXPECT_THAT(out_.str(), Not(HasSubstr(said)));
}

// At once, not when the first epoch has been trained.
TEST_F(TrainerTest, RefusesWhatWouldFailAfterTheFirstEpoch) {
  const auto refusal = [&](const std::function<void(ClassifierProgram*)>& spoil) {
    ClassifierProgram spoiled = Perceptron({.learning_rate = 0.05f, .total_steps = 40});
    spoil(&spoiled);
    return std::string(ErrorOf([&] {
                         Trainer(&spoiled, &images_.train, &images_.validation, Options("run"),
                                 &out_);
                       }).what());
  };
  EXPECT_THAT(ErrorOf([&] {
                Trainer(&program_, nullptr, &images_.validation, Options("run"), &out_);
              }).what(),
              HasSubstr("no reader of the training's batches"));
  EXPECT_THAT(
      ErrorOf([&] { Trainer(&program_, &images_.train, nullptr, Options("run"), &out_); }).what(),
      HasSubstr("no reader of the validation's batches"));
  EXPECT_THAT(refusal([](ClassifierProgram* p) { p->model_outputs.clear(); }),
              StartsWith("the model that the training would save: "));
  EXPECT_THAT(refusal([](ClassifierProgram* p) { p->model_outputs = {"nothing"}; }),
              HasSubstr("\"nothing\""));
  EXPECT_THAT(refusal([](ClassifierProgram* p) { p->learning_rate = "nothing"; }),
              HasSubstr("the learning rate \"nothing\": the main program has no such variable"));
  EXPECT_THAT(refusal([](ClassifierProgram* p) {
                p->metrics.push_back({.name = "rate", .variable = p->learning_rate});
              }),
              HasSubstr("the test program has no such variable"));
  EXPECT_THAT(refusal([](ClassifierProgram* p) {
                p->metrics.push_back({.name = "logits", .variable = p->model_outputs[0]});
              }),
              HasSubstr("expected one number"));
  EXPECT_THAT(refusal([](ClassifierProgram* p) {
                Var kept;
                kept.name = "kept";
                kept.dims = {1};
                kept.persistable = true;
                p->test->root()->CreateVar(std::move(kept));
              }),
              HasSubstr("\"kept\" of the test program: neither the startup program"));
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
    EXPECT_EQ(resumed.records[i].train.at("loss"), whole.records[i].train.at("loss"));
    EXPECT_EQ(resumed.records[i].validation.at("loss"), whole.records[i].validation.at("loss"));
    EXPECT_EQ(resumed.records[i].learning_rate, whole.records[i].learning_rate);
  }
}

// A setting that a later version has added counts as what earlier versions did.
TEST_F(TrainerTest, ResumesWhatAnEarlierVersionBegan) {
  TrainerOptions options = Options("run");
  options.stop_after_steps = 3;
  Make(options).Run();
  options.earlier_configuration = {{"speed", "slow"}};
  options.configuration["speed"] = "fast";
  Trainer fast = Make(options);
  EXPECT_THAT(ErrorOf([&] { fast.Resume(); }).what(),
              HasSubstr("made with speed = slow, but now it is fast: resume with the old value"));
  options.configuration["speed"] = "slow";
  Make(options).Resume();
  EXPECT_THAT(out_.str(), HasSubstr("resumed from "));
}

// A training that is cut off after it wrote the line of an epoch, but before its checkpoint, writes
// that line again when resumed, and removes half-written files.
TEST_F(TrainerTest, LeavesNothingOfWhereItWasCutOff) {
  TrainerOptions options = Options("run");
  options.save_every_steps = 10;  // an epoch's; saved once more at its end
  const std::string curve = options.output_dir + "/learning_curve.svg";
  CreateDirectories(curve + "/in the way");
  EXPECT_THAT(ErrorOf([&] { Make(options).Run(); }).what(), HasSubstr(curve));
  std::filesystem::remove_all(curve);
  Trainer trainer = Make(options);
  trainer.Resume();
  // What a kill in the middle of a file leaves.
  PutBytes(options.output_dir + "/training_log.jsonl.tmp-0123456789abcdef", "{");
  CreateDirectories(options.output_dir + "/model");
  PutBytes(options.output_dir + "/model/__model__.tmp-fedcba9876543210", "x");
  const TrainingResult result = trainer.Run();
  EXPECT_THAT(NamesIn(options.output_dir), ElementsAre(".lock", "checkpoints", "learning_curve.svg",
                                                       "model", "training_log.jsonl"));
  EXPECT_FALSE(
      std::filesystem::exists(options.output_dir + "/model/__model__.tmp-fedcba9876543210"));
  ASSERT_EQ(result.records.size(), 4u);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(result.records[i].epoch, i + 1);
}

// A reader that does something else before a batch.
class InterruptedReader : public Reader {
 public:
  InterruptedReader(Reader* reader, int64_t batch, std::function<void()> interruption)
      : reader_(reader), left_(batch), interruption_(std::move(interruption)) {}

  void StartEpoch(int64_t epoch) override { reader_->StartEpoch(epoch); }
  bool Next(Batch* batch) override {
    if (left_-- == 0) interruption_();
    return reader_->Next(batch);
  }
  ReaderState state() const override { return reader_->state(); }
  void Restore(const ReaderState& state) override { reader_->Restore(state); }
  int64_t batches_in_epoch() const override { return reader_->batches_in_epoch(); }

 private:
  Reader* reader_;
  int64_t left_;
  std::function<void()> interruption_;
};

// Whenever it happens: before the checkpoint of a step, before that of an epoch, or when the best
// model was written long ago.
TEST_F(TrainerTest, NoticesThatItsOutputIsRemoved) {
  const auto run = [&](const TrainerOptions& options, const std::string& removed) {
    InterruptedReader reader(&images_.train, 15,
                             [&] { std::filesystem::remove_all(options.output_dir + removed); });
    Trainer(&program_, &reader, &images_.validation, options, &out_).Run();
  };
  TrainerOptions options = Options("run");
  for (const int64_t save_every : {0, 16}) {
    SCOPED_TRACE(save_every);
    options.save_every_steps = save_every;
    ExpectError([&] { run(options, ""); }, ErrorCode::kDataLoss,
                options.output_dir +
                    " was removed, renamed or replaced since the training has taken it, which "
                    "writes no further: "
                    "give it back its name and resume, or begin anew in another output directory");
    EXPECT_FALSE(std::filesystem::exists(options.output_dir));
  }
  // At learning rate 0 the first epoch stays the best, so no other one writes the model again.
  program_ = Perceptron({.learning_rate = 0, .total_steps = 40});
  options.model_files = {{"words.txt", "a"}};
  const std::string removed =
      " was written by the training, but isn't there any more: somebody removed it";
  for (const std::string name : {"/model", "/model/words.txt"}) {
    std::filesystem::remove_all(options.output_dir);
    ExpectError([&] { run(options, name); }, ErrorCode::kDataLoss,
                options.output_dir + (name == "/model" ? "/model/__model__" : name) + removed);
  }
}

// Nothing is left to train, so nothing would be written again.
TEST_F(TrainerTest, NoticesThatItsOutputIsRemovedBetweenResumeAndRun) {
  const TrainerOptions options = Options("run");
  Make(options).Run();
  const std::string checkpoints = options.output_dir + "/checkpoints";
  {
    Trainer trainer = Make(options);
    trainer.Resume();
    for (const std::string& name : NamesIn(checkpoints)) {
      std::filesystem::remove_all(checkpoints + "/" + name);
    }
    ExpectError([&] { trainer.Run(); }, ErrorCode::kDataLoss,
                "a checkpoint in " + checkpoints +
                    " was written by the training, but isn't there any more: somebody removed it");
  }
  std::filesystem::remove_all(options.output_dir);
  Make(options).Run();
  Trainer trainer = Make(options);
  trainer.Resume();
  std::filesystem::remove_all(options.output_dir);
  EXPECT_THAT(ErrorOf([&] { trainer.Run(); }).what(), HasSubstr(" was removed, renamed or "));
  EXPECT_FALSE(std::filesystem::exists(options.output_dir));
}

// The process may have been killed when the last save was complete and removed older ones. Nothing
// is left to train then, so no other save removes them.
TEST_F(TrainerTest, RemovesWhatTheLastSaveDidNotComeToRemove) {
  const TrainerOptions options = Options("run");
  Make(options).Run();
  const std::string folder = options.output_dir + "/checkpoints/";
  const std::vector<std::string> kept = NamesIn(folder);
  ASSERT_THAT(kept, ElementsAre("save-000003-step-30", "save-000004-step-40"));
  std::filesystem::copy(folder + kept[0], folder + "save-000002-step-20");
  std::filesystem::copy(folder + kept[0], folder + ".tmp-save-removed-save-000001-step-10");
  Trainer trainer = Make(options);
  trainer.Resume();
  EXPECT_TRUE(trainer.Run().finished);
  EXPECT_EQ(NamesIn(folder), kept);
}

TEST_F(TrainerTest, GoesOnWithADamagedLog) {
  TrainerOptions options = Options("run");
  options.stop_after_steps = 25;
  const TrainingResult before = Make(options).Run();
  options.stop_after_steps = 0;
  const std::string path = options.output_dir + "/training_log.jsonl";
  std::string log = BytesOf(path);
  log[0] = '?';
  PutBytes(path, log);
  Trainer trainer = Make(options);
  trainer.Resume();
  const TrainingResult result = trainer.Run();
  EXPECT_TRUE(result.finished);
  ASSERT_EQ(result.records.size(), 3u);
  EXPECT_EQ(result.records[0], before.records[1]);
  EXPECT_THAT(out_.str(),
              HasSubstr("\nwarning: " + path + ", line 1: dropped, no training record"));
}

// At learning rate 0 the first epoch stays the best: with a patience of 2 the third is the last,
// wherever the training was broken off, and however often it is resumed after its end.
TEST_F(TrainerTest, StopsEarlyInTheSameEpochWhenResumed) {
  const ClassifierProgram still = BuildClassifier(
      images_.train_images,
      [](const Variable& image, int64_t classes) {
        return Mlp(image, {.hidden_units = 24, .classes = classes});
      },
      {.learning_rate = 0, .total_steps = 60}, 5);
  TrainerOptions options = Options("run");
  options.epochs = 6;
  options.early_stop_epochs = 2;
  for (const int64_t stop : {5, 10, 15, 20, 25}) {
    options.stop_after_steps = stop;
    Trainer trainer(&still, &images_.train, &images_.validation, options, &out_);
    if (stop > 5) trainer.Resume();
    EXPECT_FALSE(trainer.Run().finished) << stop;
  }
  options.stop_after_steps = 0;
  const auto resume = [&] {
    Trainer trainer(&still, &images_.train, &images_.validation, options, &out_);
    trainer.Resume();
    const TrainingResult result = trainer.Run();
    EXPECT_TRUE(result.finished);
    EXPECT_EQ(result.best_epoch, 1);
    return result.records.size();
  };
  EXPECT_EQ(resume(), 3u);
  EXPECT_THAT(out_.str(), EndsWith("stopped early: no better accuracy in 2 epochs\n"));
  EXPECT_EQ(resume(), 3u);
  options.early_stop_epochs = 4;
  EXPECT_EQ(resume(), 5u);
}

// Metrics of a whole evaluation stand beside the means, and may decide which epoch is best. The
// training's own batches don't fetch what they are made of.
TEST_F(TrainerTest, EvaluatesMetricsThatAreNoMeans) {
  const std::vector<std::string> streamed = {program_.probabilities, program_.label};
  const auto confusion =
      std::make_shared<ConfusionMatrix>(images_.train_images.classes, ClassScore::kAccuracy);
  program_.metrics.push_back({.name = "confusion",
                              .larger_is_better = true,
                              .streaming = confusion,
                              .streamed = streamed});
  program_.metrics.push_back({.name = "perplexity",
                              .streaming = std::make_shared<Perplexity>(),
                              .streamed = {program_.loss, "rows"}});
  program_.decisive_metric = "confusion";
  {
    Var rows{.name = "rows"};
    rows.dims = {1};
    program_.test->root()->CreateVar(std::move(rows));
    Op op("fill_constant");
    op.SetOutput("Out", {"rows"}).SetAttr("shape", std::vector<int64_t>{1});
    op.SetAttr("value", 1.0f).SetAttr("dtype", static_cast<int32_t>(DType::kFloat32));
    program_.test->root()->AppendOp(std::move(op));
  }
  TrainerOptions options = Options("run");
  options.stop_after_steps = 25;
  Make(options).Run();
  options.stop_after_steps = 0;
  Trainer trainer = Make(options);
  trainer.Resume();
  const TrainingResult result = trainer.Run();
  ASSERT_EQ(result.records.size(), 4u);
  double best = 0;
  for (const TrainingRecord& record : result.records) {
    EXPECT_FALSE(record.train.contains("confusion"));
    EXPECT_NEAR(record.validation.at("confusion"), record.validation.at("accuracy"), 1e-7);
    EXPECT_GT(record.validation.at("perplexity"), 1);
    best = std::max(best, record.validation.at("confusion"));
  }
  EXPECT_EQ(result.best_value, best);
  EXPECT_EQ(trainer.Evaluate(), result.records[3].validation);

  program_.metrics.back().streamed = {program_.loss};
  EXPECT_THAT(ErrorOf([&] { Make(Options("other")).Evaluate(); }).what(),
              HasSubstr("the metric \"perplexity\": Perplexity gets 1 tensors, expected 2"));
  program_.metrics.back().streamed = {"nothing"};
  EXPECT_THAT(ErrorOf([&] { Make(Options("other")); }).what(),
              HasSubstr("\"perplexity\" \"nothing\": the test program has no such variable"));
  program_.metrics.back().streamed = {};
  EXPECT_THAT(ErrorOf([&] { Make(Options("other")); }).what(),
              HasSubstr("\"perplexity\" is a streaming one: expected variables to stream"));
  program_.metrics.back().streaming = nullptr;
  program_.metrics.back().streamed = {program_.loss};
  EXPECT_THAT(ErrorOf([&] { Make(Options("other")); }).what(),
              HasSubstr("but `streaming` is nullptr"));
}

TEST_F(TrainerTest, RefusesToResumeWithAnotherConfiguration) {
  TrainerOptions options = Options("run");
  options.stop_after_steps = 3;
  Make(options).Run();
  const std::string where = options.output_dir + "/checkpoints/save-000001-step-3: the checkpoint ";
  const auto expect = [&](const std::map<std::string, std::string>& configuration,
                          const std::string& message) {
    options.configuration = configuration;
    Trainer trainer = Make(options);
    const std::string hash = trainer.WeightsHash();
    ExpectError([&] { trainer.Resume(); }, ErrorCode::kInvalidArgument, where + message);
    EXPECT_EQ(trainer.WeightsHash(), hash);
  };
  expect({{"seed", "6"}},
         "was made with seed = 5, but now it is 6: resume with the old value, or begin anew in "
         "another output directory");
  expect({{"seed", "5"}, {"depth", "20"}},
         "is another program's: it was made without depth, but now that is 20");
  expect({}, "is another program's: it was made with seed = 5, which this program doesn't have");
}

// The contents of files count. Checkpoints of earlier versions have their names instead.
TEST_F(TrainerTest, ResumesWithTheSameFiles) {
  TrainerOptions options = Options("run");
  options.stop_after_steps = 3;
  options.file_settings = {
      {"data", {.value = "DIR/a", .form = "FILE", .contents = {{"contents", "7"}}}}};
  FileSetting& data = options.file_settings["data"];
  Make(options).Run();
  data.value = "elsewhere/b";
  options.stop_after_steps = 4;
  const auto resume = [&] {
    Trainer trainer = Make(options);
    trainer.Resume();
    trainer.Run();
  };
  resume();
  EXPECT_THAT(out_.str(), Not(HasSubstr("warning")));
  data.contents = {{"contents", "8"}};
  EXPECT_THAT(ErrorOf(resume).what(),
              HasSubstr("was made with data (contents) = 7, but now it is 8: resume with"));
  // As an earlier version would have made it.
  options.configuration["data"] = "DIR/a";
  options.file_settings.clear();
  std::filesystem::remove_all(options.output_dir);
  Make(options).Run();
  options.configuration.erase("data");
  options.file_settings["data"] = {
      .value = "DIR/b", .form = "FILE", .contents = {{"contents", "7"}}};
  options.stop_after_steps = 5;
  EXPECT_THAT(ErrorOf(resume).what(), HasSubstr("was made with data = DIR/a, but now it is DIR/b"));
  options.file_settings["data"].value = "DIR/a";
  resume();
  const std::string warning =
      "\nwarning: an earlier version wrote the checkpoint, which doesn't say what data = DIR/a "
      "held";
  EXPECT_THAT(out_.str(), HasSubstr(warning));
  // From now on it says so.
  out_.str("");
  options.file_settings["data"].value = "DIR/b";
  options.stop_after_steps = 6;
  resume();
  EXPECT_THAT(out_.str(), Not(HasSubstr("warning")));
}

TEST_F(TrainerTest, RefusesToBeginWhereATrainingIs) {
  TrainerOptions options = Options("run");
  options.stop_after_steps = 3;
  Make(options).Run();
  const auto expect_refusal = [&](Trainer* trainer) {
    ExpectError(
        [&] { trainer->Run(); }, ErrorCode::kFailedPrecondition,
        options.output_dir + " holds a training: resume it, or choose another output directory");
    EXPECT_THAT(NamesIn(options.output_dir + "/checkpoints"), ElementsAre("save-000001-step-3"));
  };
  options.stop_after_steps = 0;
  Trainer trainer = Make(options);
  expect_refusal(&trainer);
  // Also after a refused continuation; an accepted one goes on.
  TrainerOptions other = options;
  other.configuration["seed"] = "6";
  Trainer stranger = Make(other);
  EXPECT_THROW(stranger.Resume(), Error);
  expect_refusal(&stranger);
  trainer.Resume();
  EXPECT_EQ(trainer.Run().weights_hash, Make(Options("whole")).Run().weights_hash);
}

// Whether a kill came before the first checkpoint, or someone has deleted them all.
TEST_F(TrainerTest, RefusesToOverwriteAModelOrALogWithoutACheckpoint) {
  TrainerOptions options = Options("run");
  options.epochs = 1;
  Make(options).Run();
  const std::string model = options.output_dir + "/model";
  const std::string log = options.output_dir + "/training_log.jsonl";
  const auto expect_refusal = [&](const std::string& path) {
    const std::string log_bytes = BytesOf(log);
    ExpectError([&] { Make(options).Run(); }, ErrorCode::kFailedPrecondition,
                path +
                    " is of a training without a checkpoint to resume from: remove it, or choose "
                    "another output directory");
    EXPECT_EQ(BytesOf(log), log_bytes);
  };
  std::filesystem::remove_all(options.output_dir + "/checkpoints");
  expect_refusal(model);
  std::filesystem::remove_all(model);
  expect_refusal(log);
  PutBytes(log, "");
  CreateDirectories(model);
  EXPECT_TRUE(Make(options).Run().finished);
}

TEST_F(TrainerTest, RefusesToWriteWhereAnotherTrainingDoes) {
  const TrainerOptions options = Options("run");
  CreateDirectories(options.output_dir);
  Trainer trainer = Make(options);
  {
    const FileLock of_another(options.output_dir + "/.lock");
    ExpectError([&] { trainer.Run(); }, ErrorCode::kFailedPrecondition,
                "another training is writing in " + options.output_dir +
                    ": wait for its end, or choose another output directory");
  }
  EXPECT_THAT(NamesIn(options.output_dir), ElementsAre(".lock"));
  EXPECT_TRUE(trainer.Run().finished);
  // It holds the lock no longer than it writes.
  EXPECT_TRUE(FileLock(options.output_dir + "/.lock").is_held());
}

// Else another training might delete the checkpoint while it is read, or begin before Run does.
TEST_F(TrainerTest, KeepsOthersOutFromResumeToTheEndOfRun) {
  TrainerOptions options = Options("run");
  options.stop_after_steps = 3;
  Make(options).Run();
  options.stop_after_steps = 6;
  Trainer other = Make(options);
  const auto expect_refusal = [&](const std::function<void()>& run) {
    ExpectError(run, ErrorCode::kFailedPrecondition,
                "another training is writing in " + options.output_dir +
                    ": wait for its end, or choose another output directory");
  };
  Trainer trainer = Make(options);
  {
    const FileLock of_another(options.output_dir + "/.lock");
    expect_refusal([&] { trainer.Resume(); });
  }
  trainer.Resume();
  trainer.Resume();
  expect_refusal([&] { other.Resume(); });
  expect_refusal([&] { other.Run(); });
  const std::string hash = trainer.WeightsHash();
  other.LoadForEvaluation();
  EXPECT_EQ(other.WeightsHash(), hash);
  EXPECT_FALSE(trainer.Run().finished);
  other.Resume();
  EXPECT_EQ(other.WeightsHash(), trainer.WeightsHash());
}

TEST_F(TrainerTest, WarnsOfAnotherNumberOfThreads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer takes the barriers of libgomp for races";
#endif
  TrainerOptions options = Options("run");
  const auto train = [&](int threads, int64_t until) {
    const harness::ThreadCount thread_count(threads);
    options.stop_after_steps = until;
    out_.str("");
    Trainer trainer = Make(options);
    if (until > 1) trainer.Resume();
    trainer.Run();
    return out_.str();
  };
  const std::string warning = "warning: the checkpoint was made with threads = ";
  train(1, 1);
  EXPECT_THAT(train(1, 2), Not(HasSubstr(warning)));
  EXPECT_THAT(train(2, 3), HasSubstr(warning + "1, but now it is 2: the result will not be that of "
                                               "the unbroken training, bit for bit\n"));
  EXPECT_THAT(train(2, 4), Not(HasSubstr(warning)));
}

TEST_F(TrainerTest, NamesWhatTheSystemCannotTell) {
  const TrainerOptions options = Options("run");
  CreateDirectories(options.output_dir);
  const std::string log = options.output_dir + "/training_log.jsonl";
  std::filesystem::create_symlink("training_log.jsonl", log);
  ExpectError([&] { Make(options).Run(); }, ErrorCode::kIo,
              "look for " + log + ": Too many levels of symbolic links");
  EXPECT_EQ(ErrorOf([&] { TrainingLog(log, 1); }).code(), ErrorCode::kIo);
}

TEST_F(TrainerTest, RefusesAStateThatIsNotATrainers) {
  const TrainerOptions options = Options("run");
  Trainer trainer = Make(options);
  const TrainerState good = {
      {"configuration.seed", "5"}, {"epoch", "0"},          {"batch", "1"},
      {"reader.epoch", "0"},       {"reader.batch", "1"},   {"seconds", "1.5"},
      {"loss.sum", "70.5"},        {"loss.weight", "32.0"}, {"accuracy.sum", "4.0"},
      {"accuracy.weight", "32.0"}, {"samples", "32"},       {"epoch_seconds", "1.5"},
      {"learning_rate", "0.0625"}, {"best_value", "0.5"},   {"best_epoch", "0"}};
  Executor executor(Place::Cpu());
  executor.Run(*program_.startup);
  const std::string checkpoints = options.output_dir + "/checkpoints";
  const auto save = [&](const TrainerState& state) {
    return SaveCheckpoint(checkpoints, *program_.main, executor.scope(), 1, state).path;
  };
  for (const auto& [name, value] : good) {
    if (name == "configuration.seed") continue;
    SCOPED_TRACE(name);
    TrainerState state = good;
    state.erase(name);
    const bool is_readers = name.starts_with("reader.");
    const std::string part = is_readers ? ": the reader" : "";
    const std::string told = is_readers ? name.substr(7) : name;
    std::string path = save(state);
    ExpectError([&] { trainer.Resume(); }, ErrorCode::kDataLoss,
                path + part + ": the checkpoint's state has no \"" + told + "\"");
    state[name] = "much";
    path = save(state);
    const bool is_integer = value.find('.') == std::string::npos;
    ExpectError([&] { trainer.Resume(); }, ErrorCode::kDataLoss,
                path + part + ": the checkpoint's state has " + told + " = \"much\": expected " +
                    (is_integer ? "an integer of 64 bits" : "a number"));
    if (!is_integer) continue;
    state[name] = "99999999999999999999";
    save(state);
    EXPECT_THROW(trainer.Resume(), Error);
  }
  const auto expect = [&](const std::string& name, const std::string& value,
                          const std::string& message) {
    TrainerState state = good;
    if (value.empty()) {
      std::erase_if(state, [&](const auto& entry) { return entry.first.starts_with(name); });
    } else {
      state[name] = value;
    }
    const std::string path = save(state);
    ExpectError([&] { trainer.Resume(); }, ErrorCode::kDataLoss, path + ": " + message);
  };
  expect("batch", "-1",
         "the checkpoint's state is in epoch 0, batch -1: expected no negative numbers");
  expect("reader.batch", "11",
         "the reader: epoch 0, batch 11 is no place to read from: there are 10 batches an epoch");
  expect("reader.", "",
         "the checkpoint's state is in batch 1 of an epoch, but holds no state of the reader");
  save(good);
  EXPECT_NO_THROW(trainer.Resume());
}

// Whatever can't be written, the last checkpoint stays and the training goes on from it.
TEST_F(TrainerTest, AFullDiskLeavesTheLastCheckpoint) {
  TrainerOptions options = Options("run");
  options.stop_after_steps = 20;
  Make(options).Run();
  options.stop_after_steps = 0;
  for (const rlim_t room : {rlim_t{0}, rlim_t{2000}}) {
    Trainer trainer = Make(options);
    trainer.Resume();
    try {
      const FileSizeLimit limit(room);
      trainer.Run();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(": File too large"));
    }
  }
  Trainer last = Make(options);
  last.Resume();
  EXPECT_EQ(last.Run().weights_hash, Make(Options("whole")).Run().weights_hash);
}

TEST_F(TrainerTest, RefusesOptionsOutOfRange) {
  const auto expect = [&](const TrainerOptions& options, const std::string& message) {
    ExpectError([&] { Make(options); }, ErrorCode::kInvalidArgument, message);
  };
  TrainerOptions options = Options("run");
  options.epochs = 0;
  expect(options, "epochs = 0: expected at least 1");
  options = Options("run");
  options.save_every_steps = -1;
  expect(options, "save_every = -1: expected no negative number");
  options = Options("run");
  options.early_stop_epochs = -2;
  expect(options, "early_stop = -2: expected no negative number");
}

TEST_F(TrainerTest, AnEmptyBatchHasNoLossButPredictions) {
  Executor executor(Place::Cpu());
  executor.Run(*program_.startup);
  const std::string before = WeightsHash(executor.scope(), PersistableNames(*program_.main));
  const Tensor images({0, 1, 12, 12}, DType::kFloat32);
  const Tensor labels({0, 1}, DType::kInt64);
  CompiledProgram step = executor.Compile(*program_.main);
  try {
    step.Run({{program_.image, images}, {program_.label, labels}}, {program_.loss});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), StartsWith("mean (block 0, op #"));
    EXPECT_THAT(error.what(),
                EndsWith("mean: X of shape [0, 1] has no elements, expected at least one"));
  }
  EXPECT_EQ(WeightsHash(executor.scope(), PersistableNames(*program_.main)), before);
  EXPECT_EQ(executor.scope().Get(kStepCounterName).Item<int64_t>(), 0);
  const auto inference = program_.test->Prune({program_.image}, {program_.probabilities});
  const auto values =
      executor.Compile(*inference).Run({{program_.image, images}}, {program_.probabilities});
  EXPECT_EQ(values[0].shape(), (Shape{0, 10}));
}

// A label that is no class fails its step only: the next one is as if it hadn't been.
TEST_F(TrainerTest, ABatchWithABadLabelLeavesNoTrace) {
  const auto run = [&](bool disturbed) {
    Executor executor(Place::Cpu());
    executor.Run(*program_.startup);
    CompiledProgram step = executor.Compile(*program_.main);
    images_.train.StartEpoch(0);
    Batch batch;
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(images_.train.Next(&batch));
      const FetchList fetches = {program_.loss};
      if (disturbed) {
        for (const int64_t label : {int64_t{10}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
          Tensor labels = CopyToCpu(batch.feed("label"));
          labels.data<int64_t>()[7] = label;
          try {
            step.Run({{program_.image, batch.feed("image")}, {program_.label, labels}}, fetches);
            ADD_FAILURE() << "no error for label " << label;
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
            EXPECT_THAT(error.what(), StartsWith("softmax_with_cross_entropy (block 0, op #"));
            EXPECT_THAT(error.what(), HasSubstr("models/common/classifier_program.cc:"));
            EXPECT_THAT(
                error.what(),
                EndsWith(StrCat("): softmax_with_cross_entropy: the label of row 7 is ", label,
                                ", expected a class in [0, 10) or ignore_index = -100")));
          }
        }
      }
      step.Run({{program_.image, batch.feed("image")}, {program_.label, batch.feed("label")}},
               fetches);
    }
    EXPECT_EQ(executor.scope().Get(kStepCounterName).Item<int64_t>(), 3);
    return WeightsHash(executor.scope(), PersistableNames(*program_.main));
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_F(TrainerTest, ABatchOfAnotherShapeIsRefused) {
  Executor executor(Place::Cpu());
  executor.Run(*program_.startup);
  CompiledProgram step = executor.Compile(*program_.main);
  images_.train.StartEpoch(0);
  Batch batch;
  ASSERT_TRUE(images_.train.Next(&batch));
  const auto run = [&](const Tensor& image, const Tensor& label) {
    return [&, image, label] {
      step.Run({{program_.image, image}, {program_.label, label}}, {program_.loss});
    };
  };
  const Tensor large({32, 1, 12, 13}, DType::kFloat32);
  ExpectError(run(large, batch.feed("label")), ErrorCode::kInvalidArgument,
              "feed \"image\": shape [32, 1, 12, 13] given, [-1, 1, 12, 12] expected");
  const Tensor column({32}, DType::kInt64);
  ExpectError(run(batch.feed("image"), column), ErrorCode::kInvalidArgument,
              "feed \"label\": shape [32] given, [-1, 1] expected");
  const Tensor floats({32, 1}, DType::kFloat32);
  ExpectError(run(batch.feed("image"), floats), ErrorCode::kInvalidArgument,
              "feed \"label\": dtype float32 given, int64 expected");
  // One more label than images: only the op can tell.
  Tensor more({33, 1}, DType::kInt64);
  std::ranges::fill(more.values<int64_t>(), 0);
  try {
    run(batch.feed("image"), more)();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), StartsWith("softmax_with_cross_entropy (block 0, op #"));
    EXPECT_THAT(error.what(), EndsWith("Label is of shape [33, 1], expected [32, 1]"));
  }
  EXPECT_NO_THROW(run(batch.feed("image"), batch.feed("label"))());
}

// Training gives the same weights as without averages; the saved model has the averages.
TEST_F(TrainerTest, AveragesAreReportedSavedAsTheModelAndResumed) {
  for (const AveragingKind kind : {AveragingKind::kWindow, AveragingKind::kEma}) {
    const std::string name = kind == AveragingKind::kEma ? "ema" : "window";
    SCOPED_TRACE(name);
    const ClassifierProgram averaging = Perceptron({.learning_rate = 0.05f,
                                                    .total_steps = 40,
                                                    .warmup_updates = 5,
                                                    .averaging = kind,
                                                    .average_window = 0.25f,
                                                    .ema_decay = 0.9f});
    const auto make = [&](const TrainerOptions& options) {
      return Trainer(&averaging, &images_.train, &images_.validation, options, &out_);
    };
    const TrainingResult raw = Make(Options(name + "_raw")).Run();
    const TrainerOptions whole_options = Options(name + "_whole");
    const TrainingResult whole = make(whole_options).Run();
    EXPECT_EQ(whole.weights_hash, raw.weights_hash);
    double best = 0;
    for (size_t i = 0; i < whole.records.size(); ++i) {
      const TrainingRecord& record = whole.records[i];
      EXPECT_EQ(record.validation.at("loss"), raw.records[i].validation.at("loss"));
      EXPECT_NE(record.averaged.at("loss"), record.validation.at("loss"));
      best = std::max(best, record.averaged.at("accuracy"));
    }
    EXPECT_EQ(whole.best_value, best);
    EXPECT_THAT(out_.str(), HasSubstr("  |  averaged loss "));

    TrainerOptions options = Options(name + "_broken");
    for (const int64_t stop : {7, 20, 33, 0}) {
      options.stop_after_steps = stop;
      Trainer trainer = make(options);
      if (stop != 7) trainer.Resume();
      const TrainingResult result = trainer.Run();
      if (stop != 0) continue;
      EXPECT_EQ(result.weights_hash, whole.weights_hash);
      for (size_t i = 0; i < whole.records.size(); ++i) {
        EXPECT_EQ(result.records[i].averaged.at("loss"), whole.records[i].averaged.at("loss"));
      }
    }
    for (const char* file : {"/model/__params__", "/model/__model__",
                             "/unaveraged_model/__params__", "/unaveraged_model/__model__"}) {
      EXPECT_EQ(BytesOf(options.output_dir + file), BytesOf(whole_options.output_dir + file));
    }
    // The same training up to that epoch, without averages.
    TrainerOptions up_to_best = Options(name + "_up_to_best");
    up_to_best.epochs = whole.best_epoch;
    Executor executor;
    const InferenceModel unaveraged =
        LoadInferenceModel(options.output_dir + "/unaveraged_model", &executor.scope(),
                           {.params_filename = kCombinedParamsFile});
    EXPECT_EQ(WeightsHash(executor.scope(), PersistableNames(*unaveraged.program)),
              Make(up_to_best).Run().weights_hash);
    EXPECT_FALSE(std::filesystem::exists(Options(name + "_raw").output_dir + "/unaveraged_model"));
    EXPECT_NE(BytesOf(options.output_dir + "/model/__params__"),
              BytesOf(Options(name + "_raw").output_dir + "/model/__params__"));
    Trainer evaluator = make(options);
    evaluator.LoadForEvaluation();
    EXPECT_EQ(evaluator.EvaluateAveraged().at("loss"), whole.records.back().averaged.at("loss"));
    EXPECT_EQ(evaluator.WeightsHash(), whole.weights_hash);
  }
}

// The process ends between two steps of an evaluation with averages: the files must have the raw
// values.
TEST_F(TrainerTest, AKillWhileAveragesStandInForTheWeightsLosesNothing) {
  const ClassifierProgram averaging =
      Perceptron({.learning_rate = 0.05f, .total_steps = 40, .averaging = AveragingKind::kEma});
  TrainerOptions options = Options("run");
  options.epochs = 2;
  const auto make = [&] {
    return Trainer(&averaging, &images_.train, &images_.validation, options, &out_);
  };
  options.stop_after_steps = 7;
  const std::string raw = make().Run().weights_hash;
  // Ends the thread that reads ahead: a forked process doesn't have it.
  images_.train.StartEpoch(0);
  EXPECT_EXIT(
      {
        Trainer trainer = make();
        trainer.LoadForEvaluation();
        const auto averages = trainer.ApplyAverages();
        if (trainer.WeightsHash() == raw) _exit(3);
        raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "");
  Trainer resumed = make();
  resumed.Resume();
  EXPECT_EQ(resumed.WeightsHash(), raw);
}

TEST_F(TrainerTest, AMetricThatNothingCountsForIsNotReported) {
  {
    const ProgramGuard guard(program_.main.get(), program_.startup.get());
    const Variable zero = layers::FillConstant({1}, DType::kFloat32, 0);
    program_.metrics.push_back(
        {.name = "nothing", .variable = program_.loss, .weight = zero.name()});
    program_.test = program_.main->CloneForTest();
  }
  const auto run = [&](const std::string& name) { return Make(Options(name)).Run(); };
  for (const TrainingRecord& record : run("run").records) {
    EXPECT_FALSE(record.train.contains("nothing"));
    EXPECT_FALSE(record.validation.contains("nothing"));
    EXPECT_TRUE(record.validation.contains("accuracy"));
  }
  EXPECT_THAT(out_.str(), Not(HasSubstr("nothing")));
  program_.decisive_metric = "nothing";
  EXPECT_EQ(run("undecided").best_epoch, 4) << "the last one";
}

TEST_F(TrainerTest, EvaluatesWhatACheckpointHolds) {
  const TrainerOptions options = Options("run");
  const TrainingResult result = Make(options).Run();
  Trainer evaluator = Make(options);
  evaluator.LoadForEvaluation();
  EXPECT_EQ(evaluator.Evaluate().at("loss"), result.records.back().validation.at("loss"));
  EXPECT_EQ(evaluator.WeightsHash(), result.weights_hash);
}

TEST_F(TrainerTest, ResumeWithoutACheckpointIsAnError) {
  ExpectError([&] { Make(Options("nothing")).Resume(); }, ErrorCode::kNotFound,
              directory_ / "nothing/checkpoints holds no checkpoint");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "nothing"));
}

}  // namespace
}  // namespace skiff::training
