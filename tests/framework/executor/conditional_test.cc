// Branches: only what is chosen runs, for all rows or for each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/loop_networks.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

TEST(CondTest, TrainsTheBranchThatRuns) {
  const auto with_cond = [] {
    const Variable x = layers::Data("x", {kBatch, kWidth});
    const Variable flag = layers::Data("flag", {1}, DType::kBool);
    const Variable h = layers::Fc(x, kHidden, {.param_attr = {.name = "a"}});
    const Variables out = layers::Cond(
        flag, [&] { return Variables{layers::Fc(h, kHidden, {.param_attr = {.name = "b"}})}; },
        [&] { return Variables{layers::Tanh(h)}; });
    return layers::Mean(layers::Square(out[0]));
  };
  const auto without = [](bool flag) {
    const Variable x = layers::Data("x", {kBatch, kWidth});
    layers::Data("flag", {1}, DType::kBool);
    const Variable h = layers::Fc(x, kHidden, {.param_attr = {.name = "a"}});
    const Variable from_fc = layers::Fc(h, kHidden, {.param_attr = {.name = "b"}});
    return layers::Mean(layers::Square(flag ? from_fc : layers::Tanh(h)));
  };
  for (const bool flag : {true, false}) {
    const FeedList feeds = {{"x", Numbers({kBatch, kWidth}, 3)},
                            {"flag", Tensor::FromValues<bool>({1}, {flag})}};
    EXPECT_EQ(Train(with_cond, feeds), Train([&] { return without(flag); }, feeds)) << flag;
  }
}

TEST(SwitchTest, RunsTheFirstCaseThatHolds) {
  const auto choose = [](float x) {
    Program main, startup;
    Variable result;
    {
      const ProgramGuard guard(&main, &startup);
      const auto value = [](double number) {
        return layers::FillConstant({1}, DType::kFloat32, number);
      };
      const Variable input = layers::Data("x", {1});
      result = layers::Assign(value(0));
      layers::Switch choice;
      choice.Case(layers::LessThan(input, value(1)), [&] { layers::AssignTo(value(10), result); });
      choice.Case(layers::LessThan(input, value(2)), [&] { layers::AssignTo(value(20), result); });
      choice.Default([&] { layers::AssignTo(input * 100.0f, result); });
      EXPECT_THAT(InvalidArgumentText([&] { choice.Default([] {}); }),
                  ::testing::HasSubstr("a second default"));
    }
    Executor executor(Place::Cpu());
    return executor.Run(main, {{"x", Tensor::FromValues<float>({1}, {x})}}, {result})[0]
        .Item<float>();
  };
  EXPECT_EQ(choose(0), 10);
  EXPECT_EQ(choose(1), 20);
  EXPECT_EQ(choose(3), 300);
}

TEST(SwitchTest, AsksItsConditionsBeforeABlockChangesThem) {
  Program main, startup;
  Variable result;
  {
    const ProgramGuard guard(&main, &startup);
    const auto value = [](double number) {
      return layers::FillConstant({1}, DType::kFloat32, number);
    };
    const Variable flag = layers::Assign(layers::FillConstant({1}, DType::kBool, 1.0));
    result = layers::Assign(value(0));
    layers::Switch choice;
    choice.Case(flag, [&] {
      layers::AssignTo(layers::FillConstant({1}, DType::kBool, 0.0), flag);
      layers::AssignTo(value(1), result);
    });
    choice.Default([&] { layers::AssignTo(value(2), result); });
  }
  Executor executor(Place::Cpu());
  EXPECT_EQ(executor.Run(main, {}, {result})[0].Item<float>(), 1);
}

// Two layers for the rows of a batch, trained as if each row chose one of the results of both.
TEST(IfElseTest, TrainsEachBlockOnItsRows) {
  const auto layer = [](const Variable& x, const std::string& name) {
    return layers::Tanh(layers::Fc(x, 3, {.param_attr = {.name = name}}));
  };
  const auto by_rows = [&] {
    const Variable x = layers::Data("x", {4, 2});
    const Variable mask = layers::Data("mask", {4, 1}, DType::kBool);
    const Variable hidden = layers::Fc(x, 2, {.param_attr = {.name = "h"}});
    layers::IfElse choice(mask);
    choice.IfTrue([&] { return Variables{layer(choice.Input(hidden), "a")}; });
    choice.IfFalse([&] { return Variables{layer(choice.Input(hidden), "b")}; });
    return layers::Mean(layers::Square(choice.Outputs()[0]));
  };
  const auto by_where = [&] {
    const Variable x = layers::Data("x", {4, 2});
    const Variable mask = layers::Data("mask", {4, 1}, DType::kBool);
    const Variable hidden = layers::Fc(x, 2, {.param_attr = {.name = "h"}});
    const Variable chosen = layers::Cast(mask, DType::kFloat32);
    const Variable a = layer(hidden, "a");
    const Variable b = layer(hidden, "b");
    return layers::Mean(layers::Square(a * chosen + b * (chosen * -1.0f + 1.0f)));
  };
  for (const std::vector<bool>& mask : std::vector<std::vector<bool>>{
           {true, false, false, true}, {true, true, true, true}, {false, false, false, false}}) {
    const FeedList feeds = {{"x", Numbers({4, 2}, 3)},
                            {"mask", Tensor::FromValues<bool>({4, 1}, mask)}};
    ExpectNear(Train(by_rows, feeds), Train(by_where, feeds));
  }
}

// What a branch may leave alone keeps its value across the border of a segment.
TEST(LoopSegments, ABranchThatIsNotTakenKeepsAValueOfAnEarlierSegment) {
  // Only a run can tell how many places there are.
  const auto program = ParseProgramText(R"(program {
    block 0 {
      var x float32 [4] check_feed
      var flag bool [1] check_feed
      var kept float32 [4]
      var is_not_zero bool [4]
      var places int64 [-1, 1]
      var shape int32 [2]
      var numbers float32 [2]
      var sum float32 []
      var scopes step_scopes float32 []
      {Out: [kept]} = scale(X: [x]) {scale = 2.0}
      {Out: [is_not_zero]} = cast(X: [x]) {in_dtype = 5, out_dtype = 0}
      {Out: [places]} = where_index(Condition: [is_not_zero])
      {Out: [shape]} = shape(Input: [places])
      {Out: [numbers]} = cast(X: [shape]) {in_dtype = 2, out_dtype = 5}
      {Out: [sum]} = reduce_sum(X: [numbers]) {reduce_all = true}
      {Out: [kept], Scope: [scopes]} = conditional_block(Cond: [flag], Input: [x])
          {is_scalar_condition = true, sub_block = block 1}
    }
    block 1 parent=0 {
      {Out: [kept]} = assign(X: [x])
    } })");
  Executor executor(Place::Cpu());
  const Tensor x = Tensor::FromValues<float>({4}, {1, 0, 2, 3});
  for (const bool flag : {true, false}) {
    const std::vector<Tensor> found = executor.Run(
        *program, {{"x", x}, {"flag", Tensor::FromValues<bool>({1}, {flag})}}, {"kept", "sum"});
    EXPECT_EQ(found[0].ToVector<float>(),
              flag ? (std::vector<float>{1, 0, 2, 3}) : (std::vector<float>{2, 0, 4, 6}));
    EXPECT_EQ(found[1].Item<float>(), 3 + 1);
  }
}

}  // namespace
}  // namespace skiff
