#include "framework/builder/optimizer/named_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/ir/program.h"
#include "tests/harness/error_text.h"

namespace skiff::optimizer {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The ops of a training of one weight and one bias.
class NamedOptimizerTest : public ::testing::Test {
 protected:
  const std::vector<std::unique_ptr<Op>>& Minimize(const NamedOptimizer& named) {
    main_ = std::make_unique<Program>();
    startup_ = std::make_unique<Program>();
    const ProgramGuard guard(main_.get(), startup_.get());
    const Variable x = layers::Data("x", {-1, 3});
    MakeOptimizer(named)->Minimize(layers::Mean(layers::Fc(x, 2)));
    return main_->root()->ops();
  }
  const Op& UpdateOf(const NamedOptimizer& named, const std::string& parameter) {
    for (const auto& op : Minimize(named)) {
      if (op->Input("Param") == std::vector<std::string>{parameter}) return *op;
    }
    Throw(ErrorCode::kNotFound, "no update of ", parameter);
  }

  std::unique_ptr<Program> main_;
  std::unique_ptr<Program> startup_;
};

TEST_F(NamedOptimizerTest, EveryOptimizerIsMadeByTheTypeOfItsOp) {
  EXPECT_THAT(OptimizerNames(), SizeIs(12));
  for (const std::string& name : OptimizerNames()) {
    std::vector<std::string> types;
    for (const auto& op : Minimize({.name = name})) types.push_back(op->type);
    EXPECT_THAT(types, Contains(name).Times(2));
  }
}

TEST_F(NamedOptimizerTest, OptionsReachTheOp) {
  const Op& adamw = UpdateOf({.name = "adamw",
                              .weight_decay = 0.25f,
                              .exclude_from_decay = {".b_"},
                              .options = {{"beta2", 0.5}, {"lazy_mode", 1}}},
                             "fc_0.w_0");
  EXPECT_EQ(adamw.Attr<float>("beta2"), 0.5f);
  EXPECT_EQ(adamw.Attr<float>("beta1"), 0.9f);
  EXPECT_EQ(adamw.Attr<float>("coeff"), 0.25f);
  EXPECT_TRUE(adamw.Attr<bool>("with_decay"));
  EXPECT_TRUE(adamw.Attr<bool>("lazy_mode"));
  EXPECT_FALSE(
      UpdateOf({.name = "adamw", .weight_decay = 0.25f, .exclude_from_decay = {".b_"}}, "fc_0.b_0")
          .Attr<bool>("with_decay"));
  EXPECT_TRUE(UpdateOf({.options = {{"use_nesterov", 1}}}, "fc_0.w_0").Attr<bool>("use_nesterov"));
}

// What every number of every optimizer is called is what its struct calls it.
TEST_F(NamedOptimizerTest, EveryOptionIsTaken) {
  for (const std::string& name : OptimizerNames()) {
    NamedOptimizer named{.name = name};
    for (const std::string& option : OptimizerOptionNames(name)) {
      const bool is_bool = option == "lazy_mode" || option == "use_nesterov" ||
                           option == "centered" || option == "always_adapt";
      named.options[option] = is_bool ? 1 : option == "lr_power" ? -0.5 : 0.5;
    }
    EXPECT_NO_THROW(Minimize(named)) << name;
  }
  EXPECT_THAT(OptimizerOptionNames("momentum"), ElementsAre("momentum", "use_nesterov"));
}

// As ops of the program.
TEST_F(NamedOptimizerTest, DecayIsRegularizationForThoseWithoutTheirOwn) {
  const auto scales = [&](const NamedOptimizer& named) {
    int count = 0;
    for (const auto& op : Minimize(named)) count += op->type == "scale";
    return count;
  };
  EXPECT_GT(scales({.name = "sgd", .weight_decay = 0.1f}), scales({.name = "sgd"}));
  EXPECT_EQ(scales({.name = "adamw", .weight_decay = 0.1f}), scales({.name = "adamw"}));
}

TEST_F(NamedOptimizerTest, SaysWhatThereIs) {
  const auto message = [&](const NamedOptimizer& named) {
    return InvalidArgumentText([&] { MakeOptimizer(named); });
  };
  EXPECT_EQ(message({.name = "adamq"}),
            "optimizer \"adamq\": expected one of adadelta, adagrad, adam, adamax, adamw, "
            "decayed_adagrad, ftrl, lamb, lars_momentum, momentum, rmsprop, sgd");
  EXPECT_EQ(message({.name = "adam", .options = {{"beta3", 0.5}}}),
            "optimizer \"adam\" has no option \"beta3\": expected one of beta1, beta2, epsilon, "
            "lazy_mode");
  EXPECT_EQ(message({.name = "sgd", .options = {{"momentum", 0.5}}}),
            "optimizer \"sgd\" has no option \"momentum\"");
  EXPECT_EQ(message({.options = {{"use_nesterov", 0.5}}}),
            "option use_nesterov = 0.5: expected 0 or 1");
  EXPECT_EQ(message({.weight_decay = -1}),
            "weight_decay = -1: expected a finite number, not negative");
  EXPECT_EQ(message({.exclude_from_decay = {".b_"}}),
            "optimizer \"momentum\" excludes no parameter from decay: expected adamw, lamb or "
            "lars_momentum");
  EXPECT_THAT(message({.name = "adam", .options = {{"beta1", 2}}}), HasSubstr("beta1 = 2"));
}

}  // namespace
}  // namespace skiff::optimizer
