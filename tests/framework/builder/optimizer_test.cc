#include "framework/builder/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adadelta.h"
#include "framework/builder/optimizer/adagrad.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/adamax.h"
#include "framework/builder/optimizer/adamw.h"
#include "framework/builder/optimizer/decayed_adagrad.h"
#include "framework/builder/optimizer/ftrl.h"
#include "framework/builder/optimizer/lamb.h"
#include "framework/builder/optimizer/lars_momentum.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/optimizer/rmsprop.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/ir/op_role.h"
#include "framework/ir/text.h"
#include "framework/transpiler/pass.h"
#include "tests/framework/builder/warnings.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

// loss = Σ w · x, so that the gradient of w is x, whatever w is.
class OptimizerTest : public testing::Test {
 protected:
  Variable LinearLoss(const ParamAttr& attr, const std::string& feed) {
    const Variable x = layers::Data(feed, {1, 2});
    ParamAttr with_value = attr;
    with_value.initializer = initializer::FromArray(std::vector<float>{1.0f, -2.0f});
    return layers::ReduceSum(layers::Fc(x, 1, {.param_attr = with_value, .bias_attr = false}));
  }

  // The parameter after `steps` runs with x = [3, 4].
  std::vector<float> Train(const std::string& parameter, const FeedList& feeds, int steps = 1) {
    Executor exe(Place::Cpu());
    exe.Run(startup_);
    CompiledProgram program = exe.Compile(main_);
    for (int i = 0; i < steps; ++i) program.Run(feeds, {});
    return CopyToCpu(exe.scope().Get(parameter)).ToVector<float>();
  }

  static FeedList Feed(const std::string& name) {
    return {{name, Tensor::FromValues<float>({1, 2}, {3.0f, 4.0f})}};
  }

  std::vector<std::string> OptimizeOps() const {
    std::vector<std::string> types;
    for (const auto& op : main_.root()->ops()) {
      if (op->role() == kRoleOptimize) types.push_back(op->type);
    }
    return types;
  }

  void ExpectNear(const std::vector<float>& found, const std::vector<double>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
};

TEST_F(OptimizerTest, SgdStepsAgainstTheGradient) {
  optimizer::Sgd({.learning_rate = 0.5f}).Minimize(LinearLoss({.name = "w"}, "x"));
  ExpectNear(Train("w", Feed("x"), 2), {1.0 - 3.0, -2.0 - 4.0});
  EXPECT_THAT(OptimizeOps(), ElementsAre("sgd"));
}

TEST_F(OptimizerTest, MomentumKeepsAVelocity) {
  optimizer::Momentum({.learning_rate = 0.1f, .momentum = 0.5f})
      .Minimize(LinearLoss({.name = "w"}, "x"));
  ExpectNear(Train("w", Feed("x"), 2), {1.0 - 0.1 * (3.0 + 4.5), -2.0 - 0.1 * (4.0 + 6.0)});
  ASSERT_NE(main_.root()->FindLocalVar("w_velocity_0"), nullptr);
  EXPECT_TRUE(main_.root()->GetVar("w_velocity_0")->persistable);
}

TEST_F(OptimizerTest, AdamMovesByTheRateAtFirst) {
  optimizer::Adam({.learning_rate = 0.01f}).Minimize(LinearLoss({.name = "w"}, "x"));
  ExpectNear(Train("w", Feed("x"), 3), {1.0 - 0.03, -2.0 - 0.03});
  for (const char* name :
       {"w_moment1_0", "w_moment2_0", "w_beta1_pow_acc_0", "w_beta2_pow_acc_0"}) {
    EXPECT_NE(startup_.root()->FindLocalVar(name), nullptr) << name;
  }
}

TEST_F(OptimizerTest, RefusesOptionsThatMakeNoSense) {
  using namespace optimizer;  // NOLINT(google-build-using-namespace)
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<std::function<void()>, std::string>> calls = {
      {[] { Momentum({.momentum = -1.0f}); },
       "momentum: momentum = -1, expected a number of at least 0"},
      {[] { LarsMomentum({.weight_decay = -0.5f}); },
       "lars_momentum: weight_decay = -0.5, expected a number of at least 0"},
      {[] { LarsMomentum({.coefficient = -1.0f}); },
       "lars_momentum: coefficient = -1, expected a number of at least 0"},
      {[] {
         LarsMomentum({.exclude_from_decay = {"bias", ""}});
       },
       "lars_momentum: exclude_from_decay has an empty text, expected parts of parameters' names"},
      {[] { Adam({.beta1 = 1.0f}); }, "adam: beta1 = 1, expected a number in [0, 1)"},
      {[] { Adam({.beta2 = kNan}); }, "adam: beta2 = nan, expected a number in [0, 1)"},
      {[] { AdamW({.epsilon = -1.0f}); }, "adamw: epsilon = -1, expected a positive number"},
      {[] { Adam({.epsilon = 0.0f}); }, "adam: epsilon = 0, expected a positive number"},
      {[] { Lamb({.epsilon = 0.0f}); }, "lamb: epsilon = 0, expected a positive number"},
      {[] { DecayedAdagrad({.epsilon = 0.0f}); },
       "decayed_adagrad: epsilon = 0, expected a positive number"},
      {[] { Adamax({.epsilon = 0.0f}); }, "adamax: epsilon = 0, expected a positive number"},
      {[] { Adadelta({.epsilon = 0.0f}); }, "adadelta: epsilon = 0, expected a positive number"},
      {[] { RmsProp({.epsilon = kNan}); }, "rmsprop: epsilon = nan, expected a positive number"},
      {[] { Adagrad({.epsilon = 0.0f}); },
       "adagrad: epsilon = 0, expected a positive number, or a positive initial_accumulator"},
      {[] { Adagrad({.epsilon = -1.0f, .initial_accumulator = 1.0f}); },
       "adagrad: epsilon = -1, expected a number of at least 0"},
      {[] { AdamW({.weight_decay = -1.0f}); },
       "adamw: weight_decay = -1, expected a number of at least 0"},
      {[] { Lamb({.weight_decay = kNan}); },
       "lamb: weight_decay = nan, expected a number of at least 0"},
      {[] { Lamb({.beta2 = 1.5f}); }, "lamb: beta2 = 1.5, expected a number in [0, 1)"},
      {[] { Adamax({.beta2 = -0.5f}); }, "adamax: beta2 = -0.5, expected a number in [0, 1)"},
      {[] { Adagrad({.initial_accumulator = -1.0f}); },
       "adagrad: initial_accumulator = -1, expected a number of at least 0"},
      {[] { DecayedAdagrad({.decay = 1.0f}); },
       "decayed_adagrad: decay = 1, expected a number in [0, 1)"},
      {[] { Adadelta({.rho = 2.0f}); }, "adadelta: rho = 2, expected a number in [0, 1)"},
      {[] { RmsProp({.rho = 1.0f}); }, "rmsprop: rho = 1, expected a number in [0, 1)"},
      {[] { RmsProp({.momentum = -1.0f}); },
       "rmsprop: momentum = -1, expected a number of at least 0"},
      {[] { Ftrl({.l1 = -1.0f}); }, "ftrl: l1 = -1, expected a number of at least 0"},
      {[] { Ftrl({.lr_power = 0.5f}); }, "ftrl: lr_power = 0.5, expected a number of at most 0"}};
  for (const auto& [call, message] : calls) {
    EXPECT_THAT(InvalidArgumentText(call),
                AllOf(HasSubstr("optimizer_test.cc:"), EndsWith(": " + message)));
  }
}

TEST_F(OptimizerTest, AWrongOptionNamesTheLineThatMakesTheOptimizer) {
  const auto site = std::source_location::current();
  EXPECT_EQ(InvalidArgumentText([] { optimizer::Ftrl({.l1 = -1.0f}); }),
            StrCat(site.file_name(), ":", site.line() + 1,
                   ": ftrl: l1 = -1, expected a number of at least 0"));
  // The site can be that of another call, for code that makes an optimizer on behalf of others.
  EXPECT_EQ(
      InvalidArgumentText([&] { optimizer::Adam({.beta1 = 1.0f}, site); }),
      StrCat(site.file_name(), ":", site.line(), ": adam: beta1 = 1, expected a number in [0, 1)"));
}

// Needs no epsilon with sums that start above 0.
TEST_F(OptimizerTest, AdagradMayStartFromASumInPlaceOfAnEpsilon) {
  optimizer::Adagrad({.learning_rate = 1.0, .epsilon = 0.0f, .initial_accumulator = 16.0f})
      .Minimize(LinearLoss({.name = "w"}, "x"));
  ExpectNear(Train("w", Feed("x")), {1.0 - 3.0 / 5.0, -2.0 - 4.0 / std::sqrt(32.0)});
}

// The first step of a warm-up from 0.
TEST_F(OptimizerTest, FtrlStandsStillAtARateOfZero) {
  const Variable rate = learning_rate::Piecewise({1}, {0.0f, 0.5f});
  optimizer::Ftrl({.learning_rate = rate}).Minimize(LinearLoss({.name = "w"}, "x"));
  EXPECT_EQ(Train("w", Feed("x"), 1), (std::vector<float>{1.0f, -2.0f}));
  // sigma = 3 / 0.5, linear = 3 - sigma, curvature = sigma; and of the other element.
  ExpectNear(Train("w", Feed("x"), 2), {3.0 / 6.0, -20.0 / 8.0});
}

TEST_F(OptimizerTest, StatesHaveTheNamesOfFluid) {
  using namespace optimizer;  // NOLINT(google-build-using-namespace)
  const std::vector<std::pair<std::shared_ptr<Optimizer>, std::vector<std::string>>> optimizers = {
      {std::make_shared<Sgd>(), {}},
      {std::make_shared<Momentum>(), {"velocity"}},
      {std::make_shared<LarsMomentum>(), {"velocity"}},
      {std::make_shared<Adam>(), {"moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc"}},
      {std::make_shared<AdamW>(), {"moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc"}},
      {std::make_shared<Lamb>(), {"moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc"}},
      {std::make_shared<Adamax>(), {"moment", "inf_norm", "beta1_pow_acc"}},
      {std::make_shared<Adagrad>(), {"moment"}},
      {std::make_shared<DecayedAdagrad>(), {"moment"}},
      {std::make_shared<Adadelta>(), {"_avg_squared_grad", "_avg_squared_update"}},
      {std::make_shared<RmsProp>(), {"mean_square", "momentum", "mean_grad"}},
      {std::make_shared<Ftrl>(), {"squared", "linear"}}};
  for (const auto& [optimizer, kinds] : optimizers) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    optimizer->Minimize(LinearLoss({.name = "w"}, "x"));
    std::vector<std::string> expected = {"w", "learning_rate_0"};
    for (const std::string& kind : kinds) expected.push_back("w_" + kind + "_0");
    std::vector<std::string> found;
    for (const auto& var : startup.root()->vars()) found.push_back(var->name);
    EXPECT_THAT(found, UnorderedElementsAreArray(expected));
  }
}

TEST_F(OptimizerTest, AdamaxAdvancesThePowersAfterAllUpdates) {
  const Variable loss =
      layers::ElementwiseAdd(LinearLoss({.name = "z"}, "x"), LinearLoss({.name = "a"}, "y"));
  optimizer::Adamax({.beta1 = 0.5f}).Minimize(loss);
  EXPECT_THAT(OptimizeOps(), ElementsAre("adamax", "adamax", "scale", "scale"));
  const Op& last = *main_.root()->ops().back();
  EXPECT_EQ(last.Output("Out"), std::vector<std::string>{"z_beta1_pow_acc_0"});
  EXPECT_EQ(last.Attr<std::vector<std::string>>(kOpRoleVarAttr),
            (std::vector<std::string>{"z", "z@GRAD"}));
  FeedList feeds = Feed("x");
  feeds.push_back(Feed("y")[0]);
  EXPECT_EQ(Train("z_beta1_pow_acc_0", feeds, 3), std::vector<float>{0.0625f});
}

// What Minimize refuses, it leaves the programs without.
class MinimizeError : public OptimizerTest {
 protected:
  std::string ErrorOf(const optimizer::Optimizer& optimizer, const Variable& loss,
                      const optimizer::MinimizeOptions& options = {}) {
    const auto programs = [this] { return PrintProgram(main_) + PrintProgram(startup_); };
    const std::string before = programs();
    const std::string message = InvalidArgumentText([&] { optimizer.Minimize(loss, options); });
    EXPECT_EQ(programs(), before);
    return message;
  }
};

TEST_F(MinimizeError, NamesAParameterWithTwoOptimizers) {
  const Variable loss = LinearLoss({.name = "w"}, "x");
  optimizer::Momentum().Minimize(loss);
  EXPECT_THAT(ErrorOf(optimizer::Adam(), loss),
              HasSubstr("parameter \"w\" is updated by \"momentum\" already, and \"adam\" would be "
                        "its second optimizer"));
}

// Its gradient reads nothing that the first optimizer overwrites.
TEST_F(MinimizeError, NamesABiasWithTwoOptimizers) {
  const Variable sum =
      layers::Fc(layers::Data("x", {1, 2}), 1, {.bias_attr = ParamAttr{.name = "b"}});
  const Variable loss = layers::ReduceSum(sum);
  optimizer::Sgd().Minimize(loss, {.parameters = {"b"}});
  EXPECT_THAT(ErrorOf(optimizer::Adam(), loss, {.parameters = {"b"}}),
              HasSubstr("parameter \"b\" is updated by \"sgd\" already, and \"adam\" would be its "
                        "second optimizer"));
}

// No parameter has two optimizers, but a gradient is of a value that is gone by then.
TEST_F(OptimizerTest, ASecondOptimizerCannotDifferentiateByWhatTheFirstOverwrites) {
  const Variable hidden = layers::Fc(layers::Data("x", {1, 2}), 2, {.param_attr = {.name = "u"}});
  const Variable loss = layers::ReduceSum(layers::Fc(hidden, 1, {.param_attr = {.name = "w"}}));
  optimizer::Sgd().Minimize(loss, {.parameters = {"w"}});
  EXPECT_THAT(ErrorText([&] { optimizer::Sgd().Minimize(loss, {.parameters = {"u"}}); }),
              AllOf(HasSubstr("optimizer_test.cc:"), HasSubstr("reads \"w\""),
                    HasSubstr("which is overwritten later by sgd"),
                    HasSubstr("build the forward pass of this loss after the Minimize")));
}

// As a generator and its discriminator do: a second pass, of the updated parameters.
TEST_F(OptimizerTest, ASecondOptimizerDifferentiatesAPassThatIsBuiltAfterTheFirst) {
  const Variable x = layers::Data("x", {1, 2});
  const auto loss = [&] {
    const Variable hidden = layers::Fc(x, 2, {.param_attr = {.name = "u"}, .bias_attr = false});
    return layers::ReduceSum(
        layers::Fc(hidden, 1, {.param_attr = {.name = "w"}, .bias_attr = false}));
  };
  optimizer::Sgd().Minimize(loss(), {.parameters = {"w"}});
  EXPECT_EQ(optimizer::Sgd().Minimize(loss(), {.parameters = {"u"}}).trained.size(), 1u);
}

TEST_F(MinimizeError, EachParameterMayHaveAnOptimizerOfItsOwn) {
  const Variable loss =
      layers::ElementwiseAdd(LinearLoss({.name = "u"}, "x"), LinearLoss({.name = "w"}, "y"));
  optimizer::Sgd({.learning_rate = 1.0}).Minimize(loss, {.parameters = {"u"}});
  optimizer::Sgd({.learning_rate = 0.5}).Minimize(loss, {.parameters = {"w"}});
  FeedList feeds = Feed("x");
  feeds.push_back(Feed("y")[0]);
  ExpectNear(Train("u", feeds), {1.0 - 3.0, -2.0 - 4.0});
  ExpectNear(Train("w", feeds), {1.0 - 1.5, -2.0 - 2.0});
}

TEST_F(MinimizeError, NamesAWantedParameterWithoutGradient) {
  const Variable loss = LinearLoss({.name = "w"}, "x");
  LinearLoss({.name = "other"}, "y");
  EXPECT_THAT(ErrorOf(optimizer::Sgd(), loss, {.parameters = {"w", "other"}}),
              HasSubstr("parameter \"other\" gets no gradient"));
}

// As a program has them that was parsed from a file without marks.
TEST_F(OptimizerTest, WarnsOfVariablesOfTheLossThatAreNotMarkedAsParameters) {
  const Warnings warnings;
  const Variable loss = layers::Sum({LinearLoss({.name = "w"}, "x"), LinearLoss({.name = "u"}, "y"),
                                     LinearLoss({.name = "frozen", .trainable = false}, "z")});
  LinearLoss({.name = "other"}, "o");
  for (const char* name : {"u", "frozen", "other"}) {
    main_.root()->GetVar(name)->is_parameter = false;
  }
  const optimizer::Minimized minimized = optimizer::Sgd().Minimize(loss);
  ASSERT_EQ(minimized.trained.size(), 1u);
  EXPECT_EQ(minimized.trained[0].parameter->name, "w");
  EXPECT_THAT(minimized.left, ElementsAre("u"));
  EXPECT_THAT(
      warnings.texts,
      ElementsAre(AllOf(HasSubstr("optimizer_test.cc:"),
                        HasSubstr("minimize: 1 parameters are trained, but not these 1 variables, "
                                  "which the loss depends on and nothing freezes: u; they aren't "
                                  "marked as parameters"))));
}

TEST_F(OptimizerTest, DoesNotWarnOfParametersOfOtherLosses) {
  const Warnings warnings;
  const Variable of_u = LinearLoss({.name = "u"}, "x");
  const Variable of_w = LinearLoss({.name = "w"}, "y");
  const LearningRate rate = learning_rate::Piecewise({1}, {1.0f, 0.5f});
  EXPECT_TRUE(optimizer::Adam({.learning_rate = rate}).Minimize(of_u).left.empty());
  EXPECT_TRUE(optimizer::Adam({.learning_rate = rate}).Minimize(of_w).left.empty());
  EXPECT_TRUE(warnings.texts.empty());
}

TEST_F(OptimizerTest, WarnsOfNothingThatSomebodyChose) {
  const Warnings warnings;
  const Variable loss =
      layers::ElementwiseAdd(LinearLoss({.name = "u"}, "x"), LinearLoss({.name = "w"}, "y"));
  EXPECT_TRUE(optimizer::Sgd().Minimize(loss, {.parameters = {"u"}}).left.empty());
  // The other one has an optimizer already.
  EXPECT_TRUE(optimizer::Sgd().Minimize(loss, {.no_grad = {"u"}}).left.empty());
  EXPECT_TRUE(warnings.texts.empty());
}

// A warning may be made an error: then nothing has happened.
TEST_F(OptimizerTest, AWarningThatThrowsLeavesThePrograms) {
  const Variable loss =
      layers::ElementwiseAdd(LinearLoss({.name = "w"}, "x"), LinearLoss({.name = "u"}, "y"));
  main_.root()->GetVar("u")->is_parameter = false;
  const std::string before = PrintProgram(main_) + PrintProgram(startup_);
  const WarningSink previous =
      SetWarningSink([](const std::string& text) { Throw(ErrorCode::kInvalidArgument, text); });
  EXPECT_THROW(optimizer::Sgd().Minimize(loss), Error);
  SetWarningSink(previous);
  EXPECT_EQ(PrintProgram(main_) + PrintProgram(startup_), before);
}

TEST_F(MinimizeError, AClipHasToConcernAParameter) {
  const Variable loss = LinearLoss({.name = "w", .need_clip = false}, "x");
  for (const GradientClip& clip : {ClipByValue(1.0f), ClipByNorm(1.0f), ClipByGlobalNorm(1.0f)}) {
    EXPECT_THAT(ErrorOf(optimizer::Sgd({.clip = clip}), loss),
                HasSubstr("there is a gradient clip, but every parameter has need_clip = false"));
  }
}

TEST_F(MinimizeError, TheRateHasOneElement) {
  const Variable loss = LinearLoss({.name = "w"}, "x");
  const Variable rate = layers::Data("rate", {2}, DType::kFloat32);
  EXPECT_THAT(ErrorOf(optimizer::Adam({.learning_rate = rate}), loss),
              HasSubstr("the learning rate \"rate\" must be of shape [1]"));
}

TEST_F(OptimizerTest, UpdatesGoByNameAndCarryTheirVariables) {
  const Variable loss =
      layers::ElementwiseAdd(LinearLoss({.name = "z"}, "x"), LinearLoss({.name = "a"}, "y"));
  const auto pairs = optimizer::Sgd({.learning_rate = 0.5f}).Minimize(loss).trained;
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].parameter->name, "a");
  const auto& ops = main_.root()->ops();
  const Op& last = *ops.back();
  EXPECT_EQ(last.Input("Param"), std::vector<std::string>{"z"});
  EXPECT_EQ(last.Attr<std::vector<std::string>>(kOpRoleVarAttr),
            (std::vector<std::string>{"z", "z@GRAD"}));
  EXPECT_EQ(last.role(), kRoleOptimize);
}

TEST_F(OptimizerTest, ParametersScaleTheRate) {
  optimizer::Sgd({.learning_rate = 0.5f})
      .Minimize(LinearLoss({.name = "w", .learning_rate = 0.1f}, "x"));
  EXPECT_THAT(OptimizeOps(), ElementsAre("scale", "sgd"));
  ExpectNear(Train("w", Feed("x")), {1.0 - 0.15, -2.0 - 0.2});
}

TEST_F(OptimizerTest, TheRateHasTheDtypeOfTheParameters) {
  const Variable x = layers::Data("x", {1, 2}, DType::kFloat64);
  const Variable loss = layers::ReduceSum(layers::Fc(x, 1, {.param_attr = {.name = "w"}}));
  optimizer::Sgd({.learning_rate = 0.5}).Minimize(loss);
  EXPECT_EQ(main_.root()->GetVar("learning_rate_0")->dtype, DType::kFloat64);
  EXPECT_THAT(OptimizeOps(), ElementsAre("sgd", "sgd"));
}

TEST_F(OptimizerTest, AScheduledRateIsCastOnceToTheDtypeOfTheParameters) {
  const Variable x = layers::Data("x", {1, 2}, DType::kFloat64);
  const ParamAttr ones{.name = "w",
                       .initializer = initializer::FromArray(std::vector<double>{1.0, 1.0})};
  const Variable loss = layers::ReduceSum(layers::Fc(x, 1, {.param_attr = ones}));
  optimizer::Sgd({.learning_rate = learning_rate::Piecewise({1}, {1.0f, 0.5f})}).Minimize(loss);
  EXPECT_THAT(OptimizeOps(), ElementsAre("cast", "sgd", "sgd"));
  for (const auto& op : main_.root()->ops()) {
    if (op->type != "sgd") continue;
    EXPECT_EQ(main_.root()->GetVar(op->Input("LearningRate")[0])->dtype, DType::kFloat64);
  }
  Executor exe(Place::Cpu());
  exe.Run(startup_);
  CompiledProgram program = exe.Compile(main_);
  const FeedList feeds{{"x", Tensor::FromValues<double>({1, 2}, {3.0, 4.0})}};
  for (int i = 0; i < 2; ++i) program.Run(feeds, {});
  EXPECT_THAT(CopyToCpu(exe.scope().Get("w")).ToVector<double>(),
              ElementsAre(1.0 - 3.0 * 1.5, 1.0 - 4.0 * 1.5));
}

TEST_F(OptimizerTest, SchedulesDriveTheRate) {
  const Variable loss = LinearLoss({.name = "w"}, "x");
  const Variable rate = learning_rate::Piecewise({1}, {1.0f, 0.5f});
  optimizer::Sgd({.learning_rate = rate}).Minimize(loss);
  ExpectNear(Train("w", Feed("x"), 2), {1.0 - 3.0 * 1.5, -2.0 - 4.0 * 1.5});
}

TEST_F(OptimizerTest, ClipsByValue) {
  optimizer::Sgd({.learning_rate = 1.0f, .clip = ClipByValue(3.5f)})
      .Minimize(LinearLoss({.name = "w"}, "x"));
  ExpectNear(Train("w", Feed("x")), {1.0 - 3.0, -2.0 - 3.5});
}

TEST_F(OptimizerTest, ClipsByNorm) {
  optimizer::Sgd({.learning_rate = 1.0f, .clip = ClipByNorm(1.0f)})
      .Minimize(LinearLoss({.name = "w"}, "x"));
  ExpectNear(Train("w", Feed("x")), {1.0 - 0.6, -2.0 - 0.8});
}

TEST_F(OptimizerTest, ClipsByTheNormOfAllGradients) {
  const Variable loss =
      layers::ElementwiseAdd(LinearLoss({.name = "u"}, "x"), LinearLoss({.name = "w"}, "y"));
  optimizer::Sgd({.learning_rate = 1.0f, .clip = ClipByGlobalNorm(1.0f)}).Minimize(loss);
  FeedList feeds = Feed("x");
  feeds.push_back(Feed("y")[0]);
  const double norm = std::sqrt(50.0);
  ExpectNear(Train("w", feeds), {1.0 - 3.0 / norm, -2.0 - 4.0 / norm});
}

TEST_F(OptimizerTest, GlobalNormBelowTheLimitChangesNothing) {
  optimizer::Sgd({.learning_rate = 1.0f, .clip = ClipByGlobalNorm(100.0f)})
      .Minimize(LinearLoss({.name = "w"}, "x"));
  EXPECT_EQ(Train("w", Feed("x")), (std::vector<float>{-2.0f, -6.0f}));
}

// The squares of all these gradients overflow float32, or vanish in it.
TEST_F(OptimizerTest, ClipsGradientsOfAnySize) {
  for (const float size : {1e18f, 3e19f, 1e20f, 1e30f, 5e37f, 1e-20f}) {
    for (const bool is_global : {false, true}) {
      SCOPED_TRACE(StrCat(size, is_global ? " of all" : " of one"));
      Program main;
      Program startup;
      const ProgramGuard guard(&main, &startup);
      const Variable loss =
          layers::ElementwiseAdd(LinearLoss({.name = "u"}, "x"), LinearLoss({.name = "w"}, "y"));
      const float limit = size < 1 ? size : 1.0f;
      optimizer::Sgd({.learning_rate = 1 / limit,
                      .clip = is_global ? ClipByGlobalNorm(limit) : ClipByNorm(limit)})
          .Minimize(loss);
      Executor exe(Place::Cpu());
      exe.Run(startup);
      exe.Compile(main).Run({{"x", Tensor::FromValues<float>({1, 2}, {0.0f, 0.0f})},
                             {"y", Tensor::FromValues<float>({1, 2}, {3.0f * size, 4.0f * size})}},
                            {});
      ExpectNear(CopyToCpu(exe.scope().Get("w")).ToVector<float>(), {1.0 - 0.6, -2.0 - 0.8});
    }
  }
}

// Float32 holds none of the norms, and the last one's factor only with few digits.
TEST_F(OptimizerTest, ClipsGradientsWhoseNormIsBeyondFloat32) {
  for (const float limit : {1e6f, 1.0f}) {
    Program main;
    Program startup;
    const ProgramGuard guard(&main, &startup);
    const Variable x = layers::Data("x", {1, 100});
    const Variable loss = layers::ReduceSum(
        layers::Fc(x, 1,
                   {.param_attr = {.name = "w", .initializer = initializer::Constant(0.0f)},
                    .bias_attr = false}));
    optimizer::Sgd({.learning_rate = 1 / limit, .clip = ClipByGlobalNorm(limit)}).Minimize(loss);
    Executor exe(Place::Cpu());
    exe.Run(startup);
    std::vector<float> gradient(100, 1e38f);
    gradient[7] = -2e38f;
    exe.Compile(main).Run({{"x", Tensor::FromValues<float>({1, 100}, gradient)}}, {});
    const std::vector<float> w = CopyToCpu(exe.scope().Get("w")).ToVector<float>();
    const double norm = std::sqrt(99 + 4);  // times 1e38
    for (size_t i = 0; i < w.size(); ++i) {
      EXPECT_NEAR(w[i], i == 7 ? 2 / norm : -1 / norm, 1e-6) << i;
    }
  }
}

TEST_F(OptimizerTest, ParametersMayStayOutOfClipping) {
  const Variable loss = layers::ElementwiseAdd(
      LinearLoss({.name = "free", .need_clip = false}, "x"), LinearLoss({.name = "w"}, "y"));
  optimizer::Sgd({.learning_rate = 1.0f, .clip = ClipByGlobalNorm(1.0f)}).Minimize(loss);
  FeedList feeds = Feed("x");
  feeds.push_back(Feed("y")[0]);
  ExpectNear(Train("free", feeds), {1.0 - 3.0, -2.0 - 4.0});
  ExpectNear(Train("w", feeds), {1.0 - 0.6, -2.0 - 0.8});
}

TEST_F(OptimizerTest, DecaysWeights) {
  optimizer::Sgd({.learning_rate = 1.0f, .regularization = L2Decay(0.1f)})
      .Minimize(LinearLoss({.name = "w"}, "x"));
  ExpectNear(Train("w", Feed("x")), {1.0 - 3.0 - 0.1, -2.0 - 4.0 + 0.2});
}

TEST_F(OptimizerTest, TheParametersOwnRegularizerWins) {
  optimizer::Sgd({.learning_rate = 1.0f, .regularization = L2Decay(0.1f)})
      .Minimize(LinearLoss({.name = "w", .regularizer = L1Decay(0.5f)}, "x"));
  ExpectNear(Train("w", Feed("x")), {1.0 - 3.0 - 0.5, -2.0 - 4.0 + 0.5});
}

TEST_F(OptimizerTest, ClipsBeforeItDecays) {
  optimizer::Sgd(
      {.learning_rate = 1.0f, .clip = ClipByGlobalNorm(1.0f), .regularization = L2Decay(0.1f)})
      .Minimize(LinearLoss({.name = "w"}, "x"));
  ExpectNear(Train("w", Feed("x")), {1.0 - 0.6 - 0.1, -2.0 - 0.8 + 0.2});
}

TEST_F(OptimizerTest, LeavesUntrainedParametersAlone) {
  const Variable loss = LinearLoss({.name = "w", .trainable = false}, "x");
  const size_t ops = main_.root()->ops().size();
  EXPECT_THAT(ErrorText([&] { optimizer::Sgd().Minimize(loss); }), HasSubstr("optimizer_test.cc:"));
  EXPECT_EQ(main_.root()->ops().size(), ops);
}

TEST_F(OptimizerTest, LeavesAProgramWithoutParametersAsItIs) {
  const Variable loss =
      layers::Mean(layers::Data("fed", {-1, 2}, DType::kFloat32, {.stop_gradient = false}));
  EXPECT_THAT(ErrorText([&] { optimizer::Sgd().Minimize(loss); }),
              HasSubstr("depends on no trainable parameter"));
  EXPECT_EQ(main_.root()->ops().size(), 1);
}

TEST_F(OptimizerTest, EvaluationDropsTheTrainingOps) {
  const Variable loss = LinearLoss({.name = "w"}, "x");
  const size_t forward_ops = main_.root()->ops().size();
  optimizer::Adam({.clip = ClipByGlobalNorm(1.0f)}).Minimize(loss);
  EXPECT_EQ(main_.CloneForTest()->root()->ops().size(), forward_ops);
}

// Two batches, normalised by themselves, with one scale, one shift and one pair of running
// statistics.
class SharedNorm : public OptimizerTest {
 protected:
  static constexpr int64_t kRows = 4;
  static constexpr double kEpsilon = 1e-5f;
  static constexpr double kMomentum = 0.9f;

  // Returns Σ p · norm(x).
  Variable NormLoss(const std::string& name, bool global) {
    const Variable x = layers::Data(name, {kRows, 2}, DType::kFloat64, {.stop_gradient = false});
    const Variable p = layers::Data("p" + name, {kRows, 2}, DType::kFloat64);
    layers::BatchNormOptions options{.param_attr = {.name = "scale"},
                                     .bias_attr = {.name = "shift"},
                                     .use_global_stats = global};
    if (const Var* mean = main_.root()->FindLocalVar("mean"); mean != nullptr) {
      options.moving_mean = {main_.root(), "mean"};
      options.moving_variance = {main_.root(), "variance"};
    } else {
      options.moving_mean_name = "mean";
      options.moving_variance_name = "variance";
    }
    return layers::ReduceSum(layers::ElementwiseMul(layers::BatchNorm(x, options), p));
  }

  static double Value(const std::string& feed, int64_t row, int64_t channel) {
    return std::sin(static_cast<double>(feed.back() * 7 + static_cast<int64_t>(feed.size()) * 31 +
                                        row * 3 + channel * 5));
  }
  static Tensor Values(const std::string& feed) {
    std::vector<double> values;
    for (int64_t i = 0; i < kRows * 2; ++i) values.push_back(Value(feed, i / 2, i % 2));
    return Tensor::FromValues<double>({kRows, 2}, values);
  }

  struct Moments {
    double mean = 0;
    double variance = 0;
  };
  static Moments MomentsOf(const std::string& feed, int64_t channel) {
    Moments moments;
    for (int64_t i = 0; i < kRows; ++i) moments.mean += Value(feed, i, channel) / kRows;
    for (int64_t i = 0; i < kRows; ++i) {
      moments.variance += std::pow(Value(feed, i, channel) - moments.mean, 2) / kRows;
    }
    return moments;
  }
};

TEST_F(SharedNorm, IsTrainedByBothAndUpdatedOneAfterTheOther) {
  const Variable first = NormLoss("a", false);
  const Variable loss = layers::ElementwiseAdd(first, NormLoss("b", false));
  optimizer::Sgd({.learning_rate = 0.5}).Minimize(loss);
  for (const char* passes : {"", "-fuse_batch_norm_act,-memory_reuse,-order"}) {
    SCOPED_TRACE(passes);
    Executor exe(Place::Cpu());
    exe.Run(startup_);
    CompiledProgram step = exe.Compile(main_, {.passes = ParsePasses(passes)});
    const auto fetched = step.Run(
        {{"a", Values("a")}, {"pa", Values("pa")}, {"b", Values("b")}, {"pb", Values("pb")}},
        {"a@GRAD", "b@GRAD"});
    for (int64_t c = 0; c < 2; ++c) {
      double scale_gradient = 0;
      double shift_gradient = 0;
      double mean = 0;
      double variance = 1;
      for (size_t which = 0; which < 2; ++which) {
        const std::string feed = which == 0 ? "a" : "b";
        const Moments moments = MomentsOf(feed, c);
        mean = kMomentum * mean + (1 - kMomentum) * moments.mean;
        variance = kMomentum * variance + (1 - kMomentum) * moments.variance;
        const double slope = 1 / std::sqrt(moments.variance + kEpsilon);
        const auto z = [&](int64_t i) { return (Value(feed, i, c) - moments.mean) * slope; };
        double sum = 0;
        double product = 0;
        for (int64_t i = 0; i < kRows; ++i) {
          sum += Value("p" + feed, i, c);
          product += Value("p" + feed, i, c) * z(i);
        }
        scale_gradient += product;
        shift_gradient += sum;
        for (int64_t i = 0; i < kRows; ++i) {
          EXPECT_NEAR(fetched[which].values<double>()[static_cast<size_t>(i * 2 + c)],
                      slope * (Value("p" + feed, i, c) - (sum + z(i) * product) / kRows), 1e-9);
        }
      }
      const auto held = [&](const char* name) {
        return exe.scope().Get(name).values<double>()[static_cast<size_t>(c)];
      };
      EXPECT_NEAR(held("mean"), mean, 1e-9);
      EXPECT_NEAR(held("variance"), variance, 1e-9);
      EXPECT_NEAR(held("scale"), 1 - 0.5 * scale_gradient, 1e-9);
      EXPECT_NEAR(held("shift"), -0.5 * shift_gradient, 1e-9);
    }
  }
}

// Frozen statistics are read by both gradients, and stay.
TEST_F(SharedNorm, MayBeFrozenInBoth) {
  const Variable first = NormLoss("a", true);
  const Variable loss = layers::ElementwiseAdd(first, NormLoss("b", true));
  optimizer::Sgd({.learning_rate = 0.5}).Minimize(loss);
  Executor exe(Place::Cpu());
  exe.Run(startup_);
  exe.scope().Set("mean", Tensor::FromValues<double>({2}, {0.5, -1}));
  exe.scope().Set("variance", Tensor::FromValues<double>({2}, {4, 9}));
  const auto fetched = exe.Compile(main_).Run(
      {{"a", Values("a")}, {"pa", Values("pa")}, {"b", Values("b")}, {"pb", Values("pb")}},
      {"a@GRAD", "b@GRAD"});
  for (size_t i = 0; i < kRows * 2; ++i) {
    const double slope = 1 / std::sqrt((i % 2 == 0 ? 4.0 : 9.0) + kEpsilon);
    for (size_t which = 0; which < 2; ++which) {
      EXPECT_NEAR(fetched[which].values<double>()[i],
                  slope * Values(which == 0 ? "pa" : "pb").values<double>()[i], 1e-9);
    }
  }
  EXPECT_EQ(exe.scope().Get("mean").ToVector<double>(), (std::vector<double>{0.5, -1}));
}

// The gradient of the first needs the statistics that the second changes.
TEST_F(SharedNorm, IsRefusedIfOneReadsWhatTheOtherUpdates) {
  const Variable first = NormLoss("a", true);
  const Variable loss = layers::ElementwiseAdd(first, NormLoss("b", false));
  EXPECT_THAT(ErrorText([&] { optimizer::Sgd().Minimize(loss); }),
              AllOf(HasSubstr("batch_norm_grad reads \"mean\""),
                    HasSubstr("which is overwritten later by batch_norm")));
}

TEST_F(OptimizerTest, TrainsASmallClassifier) {
  const Variable x = layers::Data("x", {-1, 2});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const Variable hidden = layers::Fc(x, 8, {.act = "tanh"});
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(layers::Fc(hidden, 2), label));
  optimizer::Adam({.learning_rate = 0.05f, .clip = ClipByGlobalNorm(5.0f)}).Minimize(loss);
  startup_.seed = 1;
  Executor exe(Place::Cpu());
  exe.Run(startup_);
  CompiledProgram step = exe.Compile(main_);
  // Exclusive or.
  const FeedList batch{{"x", Tensor::FromValues<float>({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1})},
                       {"label", Tensor::FromValues<int64_t>({4, 1}, {0, 1, 1, 0})}};
  float last = 0.0f;
  for (int i = 0; i < 300; ++i) last = step.Run(batch, {loss})[0].Item<float>();
  EXPECT_LT(last, 0.05f);
}

}  // namespace
}  // namespace skiff
