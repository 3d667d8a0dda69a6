// A training on other data than images: a reader of its own with three feeds, batches of several
// shapes, a loss weighted by tokens, and a metric of integers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/io/checkpoint.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/training/optimization.h"
#include "framework/training/prefetching_reader.h"
#include "framework/training/state_text.h"
#include "framework/training/trainer.h"
#include "framework/tuning/kernel_tuner.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kBatches = 6;
constexpr int64_t kWidth = 4;

// Batches have rows of x, targets and weights, as many as the place says. Its state is one number.
class RowsReader : public Reader {
 public:
  void StartEpoch(int64_t epoch) override { place_ = epoch * kPlaces; }
  bool Next(Batch* batch) override {
    if (place_ % kPlaces == kBatches) return false;
    const int64_t rows = 2 + place_ % kPlaces % 3;
    Tensor x({rows, kWidth}, DType::kFloat32);
    Tensor target({rows, 1}, DType::kFloat32);
    Tensor weight({rows, 1}, DType::kFloat32);
    for (int64_t row = 0; row < rows; ++row) {
      float sum = 0;
      for (int64_t i = 0; i < kWidth; ++i) {
        const auto number = static_cast<double>(place_ * 31 + row * 7 + i);
        const auto value = static_cast<float>(std::sin(number));
        x.data<float>()[row * kWidth + i] = value;
        sum += value;
      }
      target.data<float>()[row] = sum;
      weight.data<float>()[row] = static_cast<float>(row % 2 + 1);
    }
    // No program here reads the last one, which is passed over.
    batch->feeds = {{"x", x}, {"target", target}, {"weight", weight}, {"spare", target}};
    batch->samples = rows;
    ++place_;
    return true;
  }
  ReaderState state() const override { return {{"place", std::to_string(place_)}}; }
  void Restore(const ReaderState& state) override { place_ = IntegerOf(state, "place"); }
  int64_t batches_in_epoch() const override { return kBatches; }

 private:
  // The last of an epoch is after its last batch.
  static constexpr int64_t kPlaces = kBatches + 1;
  int64_t place_ = 0;
};

TrainingProgram Regression(float learning_rate = 0.05f) {
  TrainingProgram result;
  result.main = std::make_unique<Program>();
  result.startup = std::make_unique<Program>();
  result.main->seed = result.startup->seed = 3;
  const ProgramGuard guard(result.main.get(), result.startup.get());
  const Variable x = layers::Data("x", {-1, kWidth});
  const Variable target = layers::Data("target", {-1, 1});
  const Variable weight = layers::Data("weight", {-1, 1});
  const Variable y = layers::Fc(x, 1);
  const Variable error = y - target;
  const Variable weights = layers::ReduceSum(weight);
  const Variable loss = layers::ElementwiseDiv(layers::ReduceSum(error * error * weight), weights);
  const Variable rows = layers::Cast(layers::ReduceSum(layers::ShapeOf(x)), DType::kInt64);
  result.loss = loss;
  result.loss_weight = weights;
  result.metrics = {{.name = "rows", .variable = rows}};
  result.model_inputs = {x};
  result.model_outputs = {y};
  result.test = result.main->CloneForTest();
  Optimization optimization = Optimize(loss, {.optimizer = "adamw",
                                              .optimizer_options = {{"beta2", 0.99}},
                                              .learning_rate = learning_rate,
                                              .schedule = ScheduleKind::kConstant,
                                              .total_steps = 60});
  result.learning_rate = optimization.learning_rate;
  result.average = std::move(optimization.average);
  return result;
}

class TrainerFeedsTest : public ::testing::Test {
 protected:
  TrainerOptions Options(const std::string& name, int64_t stop = 0) {
    return {.title = "rows",
            .output_dir = directory_ / name,
            .samples = "rows",
            .epochs = 5,
            .stop_after_steps = stop};
  }
  Trainer Make(const TrainerOptions& options) {
    return Trainer(&program_, &train_, &validation_, options, &out_);
  }

  TempDirectory directory_;
  TrainingProgram program_ = Regression();
  PrefetchingReader train_{std::make_unique<RowsReader>(), 2};
  RowsReader validation_;
  std::ostringstream out_;
};

TEST_F(TrainerFeedsTest, LowersALossOfNamedTensors) {
  const TrainingResult result = Make(Options("run")).Run();
  ASSERT_TRUE(result.finished);
  ASSERT_EQ(result.records.size(), 5u);
  EXPECT_EQ(result.records.back().step, 5 * kBatches);
  EXPECT_LT(result.records.back().train.at("loss"), result.records.front().train.at("loss"));
  EXPECT_EQ(result.decisive_metric.name, "loss");
  EXPECT_EQ(result.best_epoch, 5);
  EXPECT_EQ(result.best_value, result.records.back().validation.at("loss"));
  EXPECT_THAT(out_.str(), HasSubstr(" rows/s\n"));
  EXPECT_THAT(BytesOf(directory_ / "run/training_log.jsonl"), HasSubstr("\"validation_rows\":"));
}

// The time before a resume has no part in what preparing the plans takes after it.
TEST_F(TrainerFeedsTest, TellsTheShareOfPreparationSinceTheResume) {
  const std::string checkpoints = Options("run").output_dir + "/checkpoints";
  Make(Options("run", /*stop=*/2)).Run();
  Executor executor;
  executor.Run(*program_.startup);
  LoadedCheckpoint loaded = LoadLatestCheckpoint(checkpoints, *program_.main, &executor.scope());
  loaded.state["seconds"] = "1000000.5";
  SaveCheckpoint(checkpoints, *program_.main, executor.scope(), loaded.step, loaded.state);
  Trainer resumed = Make(Options("run"));
  resumed.Resume();
  resumed.Run();
  EXPECT_THAT(out_.str(), HasSubstr(" % of the time\n"));
  EXPECT_THAT(out_.str(), Not(HasSubstr(" 0.0 % of the time\n")));
}

// Batches of 2, 3 and 4 rows have weights of 3, 4 and 6.
TEST_F(TrainerFeedsTest, WeighsEachMetricAsItSays) {
  Trainer trainer = Make(Options("run"));
  const MetricValues values = trainer.Evaluate();
  // The sum of a shape is rows + kWidth; its mean over the samples.
  EXPECT_DOUBLE_EQ(values.at("rows"), (2 * 6.0 + 3 * 7.0 + 4 * 8.0) / 9);

  Executor executor;
  executor.Run(*program_.startup);
  CompiledProgram test = executor.Compile(*program_.test);
  double sum = 0, weight = 0;
  Batch batch;
  validation_.StartEpoch(0);
  while (validation_.Next(&batch)) {
    batch.feeds.pop_back();  // spare
    const auto values_of_batch = test.Run(batch.feeds, {program_.loss, program_.loss_weight});
    const double batch_weight = values_of_batch[1].Item<float>();
    sum += batch_weight * values_of_batch[0].Item<float>();
    weight += batch_weight;
  }
  EXPECT_DOUBLE_EQ(values.at("loss"), sum / weight);
}

TEST_F(TrainerFeedsTest, ResumesAReaderOfAnyState) {
  const TrainingResult whole = Make(Options("whole")).Run();
  for (const int64_t stop : {4, 6, 11, 23, 0}) {
    Trainer trainer = Make(Options("broken", stop));
    if (stop != 4) trainer.Resume();
    const TrainingResult result = trainer.Run();
    EXPECT_EQ(result.finished, stop == 0);
    if (stop != 0) continue;
    EXPECT_EQ(result.weights_hash, whole.weights_hash);
    for (size_t i = 0; i < whole.records.size(); ++i) {
      EXPECT_EQ(result.records[i].train, whole.records[i].train);
      EXPECT_EQ(result.records[i].validation, whole.records[i].validation);
    }
  }
}

// Twice what the network gives.
TEST_F(TrainerFeedsTest, SavesAnotherProgramAsTheModel) {
  program_.model = std::make_unique<Program>();
  {
    Program startup;
    const ProgramGuard guard(program_.model.get(), &startup);
    const Variable x = layers::Data("x", {-1, kWidth});
    program_.model_outputs = {layers::Fc(x, 1) * 2.0};
  }
  Make(Options("run")).Run();
  Executor executor;
  const InferenceModel model = LoadInferenceModel(directory_ / "run/model", &executor.scope(),
                                                  {.params_filename = "__params__"});
  const Tensor x = Tensor::FromValues<float>({1, kWidth}, {1, 1, 1, 1});
  float sum = 0;
  for (const char* name : {"fc_0.w_0", "fc_0.b_0"}) {
    for (const float value : executor.scope().Get(name).ToVector<float>()) sum += value;
  }
  EXPECT_NE(sum, 0);
  EXPECT_FLOAT_EQ(executor.Run(*model.program, {{"x", x}}, model.fetch_names)[0].Item<float>(),
                  2 * sum);
}

TEST_F(TrainerFeedsTest, RefusesMetricsThatItCannotReport) {
  program_.decisive_metric = "accuracy";
  ExpectError([&] { Make(Options("run")); }, ErrorCode::kInvalidArgument,
              "the decisive metric \"accuracy\" is none of loss, rows");
  program_.decisive_metric = "rows";
  program_.metrics.push_back({.name = "loss", .variable = program_.loss});
  ExpectError([&] { Make(Options("run")); }, ErrorCode::kInvalidArgument,
              "there are two metrics \"loss\"");
}

TEST_F(TrainerFeedsTest, RefusesToTuneForUnknownBatches) {
  TrainerOptions options = Options("run");
  options.compile.tuner = std::make_shared<KernelTuner>(DefaultOpRegistry(), KernelTunerOptions{});
  ExpectError([&] { Make(options); }, ErrorCode::kInvalidArgument,
              "kernels can't be tuned: a reader doesn't know the shapes of its batches before the "
              "first step");
}

TEST_F(TrainerFeedsTest, NamesTheStepWhoseLossIsNotFinite) {
  program_ = Regression(1e30f);
  const Error error = ErrorOf([&] { Make(Options("run")).Run(); });
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(error.what(), HasSubstr(" at step "));
  EXPECT_THAT(error.what(), HasSubstr("try a lower learning rate or a longer warm-up"));
}

}  // namespace
}  // namespace skiff::training
