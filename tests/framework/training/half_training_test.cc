// Trainings in half: what evaluates, what is saved, and what begins with what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/builder/update_condition.h"
#include "framework/executor/executor.h"
#include "framework/io/checkpoint.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/io/parameters.h"
#include "framework/io/weights_hash.h"
#include "framework/ir/master_name.h"
#include "framework/precision/loss_scaling.h"
#include "framework/training/initial_weights.h"
#include "framework/training/trainer.h"
#include "models/common/classifier_program.h"
#include "models/mlp/mlp.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/error_text.h"
#include "tests/harness/image_training.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using models::ClassifierProgram;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr DType kHalf = DType::kBFloat16;
constexpr int kEpochs = 2;
// Of the perceptron below: its parameters, the image, and the results of 10 ops.
constexpr int64_t kHalfVariables = 6 + 1 + 10;

std::vector<std::string> ParametersOf(const Program& program) {
  std::vector<std::string> names;
  for (const auto& var : program.root()->vars()) {
    if (var->is_parameter) names.push_back(var->name);
  }
  return names;
}

DType DTypeIn(const Program& program, const std::string& name) {
  return program.root()->GetVar(name)->dtype;
}

int64_t HalfVariablesOf(const Program& program) {
  return std::ranges::count_if(program.root()->vars(),
                               [](const auto& var) { return IsHalf(var->dtype); });
}

// The bits of a tensor, as those of a file of one variable.
std::string BitsOf(const Tensor& tensor) {
  Scope scope;
  scope.Set("x", tensor);
  return WeightsHash(scope, {"x"});
}

// A small perceptron.
class HalfTraining : public ::testing::Test {
 protected:
  HalfTraining() : images_(160, 50, 32) {}

  ClassifierProgram Perceptron(DType dtype, OptimizationOptions options = {}) const {
    options.learning_rate = 0.05f;
    options.total_steps = 5 * kEpochs;
    options.precision.dtype = dtype;
    return models::BuildClassifier(
        images_.train_images,
        [](const Variable& image, int64_t classes) {
          return models::Mlp(image, {.hidden_units = 24, .classes = classes, .dropout = 0.1f});
        },
        options, 5);
  }
  TrainerOptions Options(const std::string& name) {
    return {.title = "test",
            .output_dir = directory_ / name,
            .epochs = kEpochs,
            .configuration = {{"seed", "5"}}};
  }
  Trainer Make(const ClassifierProgram& program, const TrainerOptions& options) {
    return Trainer(&program, &images_.train, &images_.validation, options, &out_);
  }
  // Trains to the end and returns the result.
  TrainingResult Train(const ClassifierProgram& program, const TrainerOptions& options) {
    return Make(program, options).Run();
  }

  // What a checkpoint holds.
  struct Values {
    explicit Values(const std::string& output_dir) {
      LoadVariablesOfLatestCheckpoint(output_dir + "/checkpoints", &scope);
    }
    Scope scope;
  };

  // Trains to the end, and again with a stop after so many steps. Expects that all variables end
  // with the same bits. The outputs are named "whole" and "resumed".
  void ExpectResumesToTheSameBits(const ClassifierProgram& program, int64_t steps) {
    const TrainingResult whole = Train(program, Options("whole"));
    TrainerOptions options = Options("resumed");
    options.stop_after_steps = steps;
    EXPECT_FALSE(Train(program, options).finished);
    options.stop_after_steps = 0;
    Trainer last = Make(program, options);
    last.Resume();
    EXPECT_EQ(last.Run().weights_hash, whole.weights_hash);
    const Values expected(Options("whole").output_dir);
    const Values found(options.output_dir);
    EXPECT_EQ(WeightsHash(found.scope, found.scope.Names()),
              WeightsHash(expected.scope, expected.scope.Names()));
  }

  struct Model {
    explicit Model(const std::string& directory)
        : program(LoadInferenceModel(directory, &executor.scope()).program) {}
    Executor executor{Place::Cpu()};
    std::unique_ptr<Program> program;
  };

  TempDirectory directory_;
  models::ImageTraining images_;
  std::ostringstream out_;
};

TEST_F(HalfTraining, SaysWhatIsInHalf) {
  EXPECT_TRUE(Train(Perceptron(kHalf), Options("half")).finished);
  EXPECT_THAT(out_.str(), HasSubstr("bfloat16: 10 of 15 ops, 6 of 6 parameters, 2 casts; float32 "
                                    "by their rules: accuracy (1), mean (1), softmax (1), "
                                    "softmax_with_cross_entropy (1), top_k (1)\n"));
  const std::string widened = "in float32, between casts, for want of kernels that take half: ";
  EXPECT_THAT(out_.str(), HasSubstr(widened));
  EXPECT_EQ(out_.str().find(widened), out_.str().rfind(widened)) << "once";
  EXPECT_THAT(ReadFile(JoinPath(Options("half").output_dir, "precision.txt")),
              HasSubstr("float32: mean, since its rule is to compute in float32\n"));
  out_.str("");
  EXPECT_TRUE(Train(Perceptron(DType::kFloat32), Options("float32")).finished);
  EXPECT_THAT(out_.str(), Not(HasSubstr("casts")));
}

// Of a program that doesn't say what was rewritten, as Python gives it.
TEST_F(HalfTraining, SaysWhatItSeesInHalf) {
  for (const PrecisionLevel level : {PrecisionLevel::kParameters, PrecisionLevel::kCasts}) {
    ClassifierProgram program = Perceptron(kHalf, {.precision = {.level = level}});
    program.half.reset();
    out_.str("");
    Make(program, Options("half"));
    EXPECT_EQ(out_.str(), level == PrecisionLevel::kCasts ? "bfloat16: 0 of 6 parameters\n"
                                                          : "bfloat16: 6 of 6 parameters\n");
  }
}

TEST_F(HalfTraining, SaysWhatLossScalingDoes) {
  TrainerOptions options = Options("float16");
  options.epochs = 1;
  // So large that the first updates overflow.
  const LossScaling scaling{.initial = 0x1p+100f};
  Train(Perceptron(DType::kFloat16, {.precision = {.loss_scaling = scaling}}), options);
  EXPECT_THAT(out_.str(), HasSubstr("  |  5 updates skipped so far  |  loss scale 3.96141e+28  |"));
}

// Whatever made the program: a checkpoint says what its training computed in.
TEST_F(HalfTraining, ResumesInNoOtherPrecision) {
  const PrecisionOptions kinds[] = {{.dtype = DType::kFloat32},
                                    {.dtype = kHalf},
                                    {.dtype = kHalf, .level = PrecisionLevel::kCasts},
                                    {.dtype = DType::kFloat16}};
  for (int i = 0; i < 4; ++i) {
    TrainerOptions options = Options(StrCat(i));
    options.stop_after_steps = 1;
    Train(Perceptron(kinds[i].dtype, {.precision = kinds[i]}), options);
    for (int k = 0; k < 4; ++k) {
      SCOPED_TRACE(StrCat("from ", i, " to ", k));
      const ClassifierProgram program = Perceptron(kinds[k].dtype, {.precision = kinds[k]});
      Trainer trainer = Make(program, options);
      if (i == k) {
        trainer.Resume();
        continue;
      }
      const std::string expected =
          kinds[i].dtype == kinds[k].dtype
              ? StrCat("precision_level = ", i == 1 ? "parameters" : "casts", ", but now it is ",
                       i == 1 ? "casts" : "parameters")
              : StrCat("precision = ", kinds[i].dtype, ", but now it is ", kinds[k].dtype);
      EXPECT_THAT(InvalidArgumentText([&] { trainer.Resume(); }),
                  HasSubstr("the checkpoint was made with " + expected));
    }
  }
}

// Earlier versions said nothing of the precision, and the caller may say it otherwise.
TEST_F(HalfTraining, TakesACheckpointThatNamesNoPrecisionForFloat32) {
  const ClassifierProgram full = Perceptron(DType::kFloat32);
  const ClassifierProgram half =
      Perceptron(kHalf, {.precision = {.level = PrecisionLevel::kCasts}});
  TrainerOptions options = Options("run");
  options.stop_after_steps = 1;
  Train(full, options);
  const std::string directory = options.output_dir + "/checkpoints";
  Scope scope;
  LoadedCheckpoint loaded = LoadLatestCheckpoint(directory, *full.main, &scope);
  EXPECT_EQ(loaded.state.erase("configuration.precision"), 1u);
  EXPECT_EQ(loaded.state.erase("configuration.precision_level"), 1u);
  SaveCheckpoint(directory, *full.main, scope, loaded.step, loaded.state);
  Trainer other = Make(half, options);
  EXPECT_THAT(InvalidArgumentText([&] { other.Resume(); }),
              HasSubstr("made with precision = float32, but now it is bfloat16"));
  Make(full, options).Resume();
  options.configuration["precision"] = "mine";
  options.earlier_configuration = {{"precision", "mine"}};
  Make(full, options).Resume();
}

TEST_F(HalfTraining, RefusesProgramsWithParametersOfOtherDTypes) {
  const auto refusal = [&](const ClassifierProgram& program) {
    return InvalidArgumentText([&] { Make(program, Options("refused")); });
  };
  ClassifierProgram program = Perceptron(kHalf);
  std::swap(program.test, program.model);
  EXPECT_THAT(refusal(program),
              ContainsRegex("parameter \"[a-z0-9_.]+\" of the test program is float32, expected "
                            "bfloat16 as in the main program: clone the test program after "
                            "minimize"));
  // Two programs in half are one way to save.
  program.test = program.model->Clone();
  Make(program, Options("in_half"));
  ClassifierProgram full = Perceptron(DType::kFloat32);
  full.model = program.model->Clone();
  EXPECT_THAT(refusal(full), HasSubstr("of the model program is bfloat16, expected float32"));
}

TEST_F(HalfTraining, RefusesToKeepWhatIsntThere) {
  TrainerOptions options = Options("refused");
  options.saved_precision = {.dtype = kHalf, .keep_float32 = {"sofmax"}};
  for (const DType trained_in : {DType::kFloat32, kHalf}) {
    const ClassifierProgram program = Perceptron(trained_in);
    const Error error = ErrorOf([&] { Make(program, options); });
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("keep_float32 has \"sofmax\""));
  }
}

TEST_F(HalfTraining, EvaluatesWhatItTrains) {
  const ClassifierProgram program = Perceptron(kHalf);
  for (const std::string& name : ParametersOf(*program.main)) {
    EXPECT_EQ(DTypeIn(*program.test, name), DTypeIn(*program.main, name)) << name;
  }
  EXPECT_EQ(HalfVariablesOf(*program.test), kHalfVariables);
  EXPECT_EQ(HalfVariablesOf(*program.model), 0);
  EXPECT_EQ(DTypeIn(*program.test, program.loss), DType::kFloat32);
  for (const auto& op : program.test->root()->ops()) {
    EXPECT_THAT(op->type, Not(HasSubstr("_grad")));
    EXPECT_NE(op->type, "momentum");
  }
}

TEST_F(HalfTraining, LearnsAsInFloat32) {
  const TrainingResult half = Train(Perceptron(kHalf), Options("half"));
  const TrainingResult full = Train(Perceptron(DType::kFloat32), Options("float32"));
  for (int i = 0; i < kEpochs; ++i) {
    EXPECT_NEAR(half.records[i].validation.at("loss"), full.records[i].validation.at("loss"), 0.03);
  }
}

TEST_F(HalfTraining, ResumesToTheSameBits) {
  ExpectResumesToTheSameBits(Perceptron(kHalf, {.averaging = AveragingKind::kEma}), 3);
}

// Returns the loss scale of the newest checkpoint, its good steps, and the skipped updates.
std::tuple<float, int32_t, int64_t> ScalingAt(const std::string& output_dir) {
  Scope scope;
  LoadVariablesOfLatestCheckpoint(output_dir + "/checkpoints", &scope);
  return {scope.Get(kLossScale).Item<float>(), scope.Get(kGoodSteps).Item<int32_t>(),
          scope.Get(kSkippedUpdates).Item<int64_t>()};
}

// Three updates overflow. Then the scale is doubled after each three updates in a row. The training
// stops after the second.
TEST_F(HalfTraining, ResumesWithItsLossScale) {
  const LossScaling scaling{.initial = 0x1p+19f, .growth_interval = 3};
  const ClassifierProgram program =
      Perceptron(DType::kFloat16, {.precision = {.loss_scaling = scaling}});
  TrainerOptions options = Options("stopped");
  options.stop_after_steps = 5;
  Train(program, options);
  EXPECT_EQ(ScalingAt(options.output_dir), std::tuple(0x1p+16f, 2, 3));
  ExpectResumesToTheSameBits(program, options.stop_after_steps);
  EXPECT_EQ(ScalingAt(Options("resumed").output_dir), std::tuple(0x1p+18f, 1, 3));
}

// By default. What is saved are the master weights, not the parameters that are rounded from them.
TEST_F(HalfTraining, SavesAModelInFloat32) {
  const ClassifierProgram program = Perceptron(kHalf);
  TrainerOptions options = Options("half");
  options.epochs = 1;
  Train(program, options);
  Model model(options.output_dir + "/model");
  const Values trained(options.output_dir);
  EXPECT_EQ(HalfVariablesOf(*model.program), 0);
  bool have_lost_bits = false;
  for (const std::string& name : ParametersOf(*model.program)) {
    const Tensor& saved = model.executor.scope().Get(name);
    const Tensor& value = trained.scope.Get(name);
    if (!IsHalf(value.dtype())) continue;
    EXPECT_EQ(BitsOf(saved), BitsOf(trained.scope.Get(MasterName(name)))) << name;
    EXPECT_EQ(BitsOf(harness::Cast(saved, kHalf)), BitsOf(value)) << name;
    have_lost_bits =
        have_lost_bits || BitsOf(harness::Cast(value, DType::kFloat32)) != BitsOf(saved);
  }
  EXPECT_TRUE(have_lost_bits);
}

TEST_F(HalfTraining, SavesAModelInHalfIfAsked) {
  for (const DType trained_in : {DType::kFloat32, kHalf}) {
    SCOPED_TRACE(trained_in);
    TrainerOptions options = Options(StrCat("in_", trained_in));
    options.epochs = 1;
    const ClassifierProgram program = Perceptron(trained_in);
    Train(program, options);
    options.output_dir += "_saved_half";
    // An entry that fits no op of the model: those of the loss are left out of it.
    options.saved_precision = {.dtype = kHalf, .keep_float32 = {"softmax_with_cross_entropy"}};
    Train(program, options);
    Model full(Options(StrCat("in_", trained_in)).output_dir + "/model");
    Model half(options.output_dir + "/model");
    EXPECT_EQ(HalfVariablesOf(*half.program), kHalfVariables);
    int64_t half_parameters = 0;
    for (const std::string& name : ParametersOf(*half.program)) {
      const Tensor& value = half.executor.scope().Get(name);
      half_parameters += IsHalf(value.dtype());
      EXPECT_EQ(BitsOf(value),
                BitsOf(harness::Cast(full.executor.scope().Get(name), value.dtype())))
          << name;
    }
    EXPECT_EQ(half_parameters, 6);
    images_.validation.StartEpoch(0);
    Batch batch;
    ASSERT_TRUE(images_.validation.Next(&batch));
    const auto image = std::ranges::find(batch.feeds, program.image, &FeedList::value_type::first);
    std::vector<std::vector<float>> outputs;
    for (Model* model : {&full, &half}) {
      const std::vector<Tensor> run =
          model->executor.Run(*model->program, {*image}, FetchNames(*model->program));
      outputs.push_back(run[0].ToVector<float>());
    }
    EXPECT_THAT(outputs[1], ::testing::Pointwise(::testing::FloatNear(0.02f), outputs[0]));
  }
}

// Averages take the place of the master weights, too, from which the model is saved.
TEST_F(HalfTraining, SavesAveragesInFloat32) {
  for (const AveragingKind kind : {AveragingKind::kWindow, AveragingKind::kEma}) {
    TrainerOptions options = Options(StrCat("run_", static_cast<int>(kind)));
    options.epochs = 1;
    const ClassifierProgram program =
        Perceptron(kHalf, {.averaging = kind, .average_window = 1, .ema_decay = 0.5f});
    Trainer trainer = Make(program, options);
    const TrainingResult result = trainer.Run();
    EXPECT_FALSE(result.records[0].averaged.empty());
    EXPECT_EQ(trainer.WeightsHash(), result.weights_hash);
    Model averaged(options.output_dir + "/model");
    Model own(options.output_dir + "/unaveraged_model");
    const Values trained(options.output_dir);
    for (const std::string& name : ParametersOf(*averaged.program)) {
      const Tensor& average = averaged.executor.scope().Get(name);
      const Tensor& value = own.executor.scope().Get(name);
      EXPECT_EQ(average.dtype(), DType::kFloat32);
      EXPECT_NE(BitsOf(average), BitsOf(value)) << name;
      const Tensor* master = trained.scope.Find(MasterName(name));
      if (master == nullptr) continue;
      EXPECT_EQ(BitsOf(value), BitsOf(*master)) << name;
      EXPECT_NE(BitsOf(harness::Cast(harness::Cast(average, kHalf), DType::kFloat32)),
                BitsOf(average))
          << name << ": an average in float32 has more bits";
    }
  }
}

// Models and checkpoints of either precision, as --initial_model.
TEST_F(HalfTraining, BeginsWithWeightsOfEitherPrecision) {
  TrainerOptions saved_half = Options("saved_half");
  saved_half.saved_precision.dtype = kHalf;
  saved_half.epochs = 1;
  TrainerOptions half = Options("half");
  half.epochs = 1;
  TrainerOptions full = Options("float32");
  full.epochs = 1;
  Train(Perceptron(kHalf), half);
  Train(Perceptron(kHalf), saved_half);
  Train(Perceptron(DType::kFloat32), full);
  for (const TrainerOptions* from : {&half, &saved_half, &full}) {
    for (const char* what : {"/model", "/checkpoints"}) {
      SCOPED_TRACE(from->output_dir + what);
      // What the weights are, as exactly as they are known.
      Scope source;
      if (what == std::string("/model")) {
        LoadInferenceModel(from->output_dir + what, &source);
      } else {
        LoadVariablesOfLatestCheckpoint(from->output_dir + what, &source);
      }
      for (const DType dtype : {DType::kFloat32, kHalf}) {
        const ClassifierProgram program = Perceptron(dtype);
        Executor executor(Place::Cpu());
        executor.Run(*program.startup);
        const InitialWeights taken =
            TakeWeights(from->output_dir + what, *program.main, &executor.scope(),
                        {.allow_missing = true, .allow_unused = true});
        EXPECT_THAT(taken.missing, IsEmpty());
        for (const std::string& name : ParametersOf(*program.main)) {
          const Tensor* master = source.Find(MasterName(name));
          const Tensor expected =
              harness::Cast(master == nullptr ? source.Get(name) : *master, DType::kFloat32);
          const Tensor& value = executor.scope().Get(name);
          EXPECT_EQ(value.dtype(), DTypeIn(*program.main, name));
          EXPECT_EQ(BitsOf(value), BitsOf(harness::Cast(expected, value.dtype()))) << name;
          if (!IsHalf(value.dtype())) continue;
          EXPECT_EQ(BitsOf(executor.scope().Get(MasterName(name))), BitsOf(expected)) << name;
        }
      }
    }
  }
}

TEST_F(HalfTraining, LeavesFloat32AsItWas) {
  const ClassifierProgram program = Perceptron(DType::kFloat32);
  EXPECT_EQ(program.model, nullptr);
  EXPECT_FALSE(program.half.has_value());
  EXPECT_EQ(HalfVariablesOf(*program.main) + HalfVariablesOf(*program.startup), 0);
}

TEST(Precisions, AreNamed) {
  EXPECT_EQ(PrecisionFromName("precision", "bfloat16"), DType::kBFloat16);
  EXPECT_EQ(InvalidArgumentText([] { PrecisionFromName("save_precision", "float64"); }),
            "save_precision \"float64\": expected float32, bfloat16 or float16");
  EXPECT_EQ(PrecisionLevelFromName("casts"), PrecisionLevel::kCasts);
  EXPECT_EQ(InvalidArgumentText([] { PrecisionLevelFromName("O1"); }),
            "precision_level \"O1\": expected parameters or casts");
}

TEST(LossScalings, AreRead) {
  EXPECT_FALSE(LossScalingFromText("auto").has_value());
  const LossScaling dynamic = LossScalingFromText("dynamic").value();
  EXPECT_TRUE(dynamic.is_dynamic);
  EXPECT_EQ(dynamic.initial, LossScaling().initial);
  const LossScaling fixed = LossScalingFromText("1024").value();
  EXPECT_FALSE(fixed.is_dynamic);
  EXPECT_EQ(fixed.initial, 1024);
  for (const char* text : {"", "0", "-1", "large"}) {
    EXPECT_EQ(InvalidArgumentText([&] { LossScalingFromText(text); }),
              StrCat("loss_scale \"", text, "\": expected auto, dynamic or a positive number"));
  }
}

}  // namespace
}  // namespace skiff::training
