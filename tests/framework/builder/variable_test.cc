#include "framework/builder/variable.h"

#include <gtest/gtest.h>

#include <source_location>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

class VariableTest : public testing::Test {
 protected:
  // The values of y where x = [1, 2, 4].
  std::vector<float> Evaluate(const Variable& y) {
    Executor exe(Place::Cpu());
    const std::vector<float> values{1.0f, 2.0f, 4.0f};
    const Tensor feed = Tensor::FromValues<float>(Shape{3}, values);
    const Tensor fetched = exe.Run(main_, {{"x", feed}}, {y})[0];
    return fetched.ToVector<float>();
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  Variable x_ = layers::Data("x", {3});
};

using Values = std::vector<float>;

TEST_F(VariableTest, OperatorsComputeElementByElement) {
  const Variable twice = x_ + x_;
  EXPECT_EQ(Evaluate(twice), (Values{2, 4, 8}));
  EXPECT_EQ(Evaluate(twice - x_), (Values{1, 2, 4}));
  EXPECT_EQ(Evaluate(twice * x_), (Values{2, 8, 32}));
  EXPECT_EQ(Evaluate(twice / x_), (Values{2, 2, 2}));
}

TEST_F(VariableTest, OperatorsTakeNumbersOnEitherSide) {
  EXPECT_EQ(Evaluate(x_ + 1), (Values{2, 3, 5}));
  EXPECT_EQ(Evaluate(1 + x_), (Values{2, 3, 5}));
  EXPECT_EQ(Evaluate(x_ - 0.5), (Values{0.5, 1.5, 3.5}));
  EXPECT_EQ(Evaluate(5 - x_), (Values{4, 3, 1}));
  EXPECT_EQ(Evaluate(2.0f * x_), (Values{2, 4, 8}));
  EXPECT_EQ(Evaluate(x_ / 4), (Values{0.25, 0.5, 1}));
  EXPECT_EQ(Evaluate(2 / x_), (Values{2, 1, 0.5}));
  EXPECT_EQ(Evaluate(-x_), (Values{-1, -2, -4}));
}

// Where a variable's name is expected.
TEST_F(VariableTest, NamesItselfInAScope) {
  Scope scope;
  scope.Set(x_, Tensor::FromValues<float>({3}, {1, 2, 4}));
  scope.Assign(x_, Tensor::FromValues<float>({3}, {3, 5, 7}));
  EXPECT_EQ(scope.Get(x_).ToVector<float>(), (Values{3, 5, 7}));
  EXPECT_EQ(scope.Find(x_), &scope.Get("x"));
  scope.Erase(x_);
  EXPECT_EQ(scope.Find(x_), nullptr);
}

TEST_F(VariableTest, OperatorsCompareElementByElement) {
  const auto holds = [&](const Variable& condition) {
    return Evaluate(layers::Cast(condition, DType::kFloat32));
  };
  const Variable y = 4 - x_;  // 3, 2, 0
  EXPECT_EQ(holds(x_ < y), (Values{1, 0, 0}));
  EXPECT_EQ(holds(x_ <= y), (Values{1, 1, 0}));
  EXPECT_EQ(holds(x_ > y), (Values{0, 0, 1}));
  EXPECT_EQ(holds(x_ >= y), (Values{0, 1, 1}));
  EXPECT_EQ(holds(x_ < 2), (Values{1, 0, 0}));
  EXPECT_EQ(holds(x_ <= 2), (Values{1, 1, 0}));
  EXPECT_EQ(holds(x_ > 2), (Values{0, 0, 1}));
  EXPECT_EQ(holds(x_ >= 2), (Values{0, 1, 1}));
  EXPECT_EQ(holds(2 < x_), (Values{0, 0, 1}));
  EXPECT_EQ(holds(2 <= x_), (Values{0, 1, 1}));
  EXPECT_EQ(holds(2 > x_), (Values{1, 0, 0}));
  EXPECT_EQ(holds(2 >= x_), (Values{1, 1, 0}));
}

TEST_F(VariableTest, OperatorsRememberTheirSourceLine) {
  const int32_t line = std::source_location::current().line() + 1;
  const Variable y = x_ * x_ + 1.0;
  EXPECT_TRUE(y.defined());
  for (const auto& op : main_.root()->ops()) {
    EXPECT_EQ(op->site.line, line);
    EXPECT_NE(op->site.file.find("variable_test.cc"), std::string::npos);
  }
}

TEST_F(VariableTest, StandsWhereANameIsAskedFor) {
  const std::vector<std::string> names{x_, x_ + 1};
  EXPECT_EQ(names[0], "x");
}

TEST_F(VariableTest, UndefinedVariableIsAnError) {
  const Variable none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(InvalidArgumentText([&] { none.dims(); }), "an undefined Variable was used");
  EXPECT_NE(InvalidArgumentText([&] { x_ + none; }).find("variable_test.cc:"), std::string::npos);
  EXPECT_NE(InvalidArgumentText([&] { x_ + none; }).find(": an input is an undefined Variable"),
            std::string::npos);
}

TEST_F(VariableTest, StopGradientMarksTheVariable) {
  const Variable y = (x_ + 1).StopGradient();
  EXPECT_TRUE(y.var().stop_gradient);
}

}  // namespace
}  // namespace skiff
