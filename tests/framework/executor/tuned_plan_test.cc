// Plans whose kernels a tuner chooses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/tuning/kernel_choices.h"
#include "framework/tuning/kernel_tuner.h"
#include "framework/tuning/tuning_key.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/framework/tuning/candidates.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two equal ops and one of another shape. Each candidate adds a number of its own, see
// candidates.h.
constexpr const char* kEvaluation = R"(program {
  block 0 {
    var "x" float32 [-1]
    var "a" float32 [-1]
    var "b" float32 [-1]
    var "c" float32 [1]
    var "sum" float32 [1]
    var "w" float32 [2] persistable
    {Out: ["a"]} = shift(X: ["x"], Filter: ["w"])
    {Out: ["b"]} = shift(X: ["a"], Filter: ["w"])
    {Out: ["sum"]} = tiny_sum(X: ["b"])
    {Out: ["c"]} = shift(X: ["sum"], Filter: ["w"])
  }
})";
constexpr const char* kTraining = R"(program {
  block 0 {
    var "x" float32 [-1]
    var "a" float32 [-1]
    var "w" float32 [2] persistable
    {Out: ["a"]} = shift(X: ["x"], Filter: ["w"])
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["x"]) {op_role = 2}
  }
})";

class TunedPlanTest : public ::testing::Test {
 protected:
  TunedPlanTest() {
    tiny::RegisterTinyOps(registry_);
    candidates::RegisterShift(registry_);
    executor_ = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
    executor_->scope().Assign("w", Tensor::FromValues<float>({2}, {1, 1}));
    tuner_ = std::make_shared<KernelTuner>(
        registry_,
        KernelTunerOptions{.timer = [this](const TuningRequest& request,
                                           const std::vector<const KernelDef*>& candidates) {
          constants_.push_back(request.is_constant);
          std::vector<double> times;
          for (const KernelDef* kernel : candidates) times.push_back(times_.at(kernel->name));
          return times;
        }});
  }

  std::vector<std::string> KernelsOf(const char* program, const CompileOptions& options,
                                     const std::string& fetch) {
    CompiledProgram compiled = executor_->Compile(*ParseProgramText(program), options);
    BoundProgram bound = compiled.Bind({{"x", x_}}, {fetch});
    std::vector<std::string> kernels;
    for (const InstructionTime& time : bound.TimedStep()) {
      if (time.type == "shift") kernels.push_back(time.kernel);
    }
    result_ = bound.fetch(0).ToVector<float>();
    return kernels;
  }

  OpRegistry registry_;
  std::unique_ptr<Executor> executor_;
  std::map<std::string, double> times_{{"low", 2}, {"high", 3}, {"odd", 1}};
  std::vector<std::vector<bool>> constants_;  // of each op that was timed
  std::shared_ptr<KernelTuner> tuner_;
  const Tensor x_ = Tensor::FromValues<float>({2}, {0, 0});
  std::vector<float> result_;
};

TEST_F(TunedPlanTest, RunsTheChosenKernels) {
  EXPECT_THAT(KernelsOf(kEvaluation, {}, "c"), ElementsAre("high", "high", "high"));
  EXPECT_THAT(result_, ElementsAre(2 + 2 + 2 + 2 + 2));
  EXPECT_THAT(KernelsOf(kEvaluation, {.tuner = tuner_}, "c"), ElementsAre("low", "low", "odd"));
  EXPECT_THAT(result_, ElementsAre(1 + 1 + 1 + 1 + 3));
}

TEST_F(TunedPlanTest, TimesEqualOpsOnceInAllPlans) {
  KernelsOf(kEvaluation, {.tuner = tuner_}, "c");
  EXPECT_EQ(constants_.size(), 2u);
  KernelsOf(kEvaluation, {.tuner = tuner_}, "c");
  EXPECT_EQ(constants_.size(), 2u);
}

TEST_F(TunedPlanTest, ForcedKernelsWin) {
  EXPECT_THAT(KernelsOf(kEvaluation, {.kernels = {{"shift", "high"}}, .tuner = tuner_}, "c"),
              ElementsAre("high", "high", "high"));
  EXPECT_THAT(constants_, IsEmpty());
}

// A form of a parameter is made once in evaluation, and in each step of training.
TEST_F(TunedPlanTest, TellsParametersThatStayFromThoseThatTheProgramWrites) {
  KernelsOf(kEvaluation, {.tuner = tuner_}, "a");
  EXPECT_THAT(constants_, ElementsAre(ElementsAre(false, true)));
  KernelsOf(kTraining, {.tuner = tuner_}, "a");
  EXPECT_THAT(constants_, ElementsAre(ElementsAre(false, true), ElementsAre(false, false)));
}

TEST_F(TunedPlanTest, RefusesATunerOfAnotherRegistry) {
  const OpRegistry other;
  const auto tuner = std::make_shared<KernelTuner>(other);
  ExpectError([&] { executor_->Compile(*ParseProgramText(kEvaluation), {.tuner = tuner}); },
              ErrorCode::kInvalidArgument, "option tuner: it was made for another registry");
}

TEST_F(TunedPlanTest, AFixedKernelThatIsNotThereIsAnErrorOfItsOp) {
  KernelsOf(kTraining, {.tuner = tuner_}, "a");
  KernelChoices choices = tuner_->choices();
  choices.by_key.begin()->second.kernel = "gone";
  tuner_->FixChoices(choices);
  const Error error = ErrorOf([&] { KernelsOf(kTraining, {.tuner = tuner_}, "a"); });
  EXPECT_THAT(error.what(), testing::StartsWith("shift (block 0, op #0): the choices of an earlier "
                                                "run name the kernel \"gone\""));
}

}  // namespace
}  // namespace skiff
