// Loops with gradients as PaddlePaddle writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/ir/text.h"
#include "tests/framework/executor/loop_networks.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

// A while in a while, as PaddlePaddle writes it with its gradient: the inner one assigns to h,
// which is outside of both, and ops after it read h.
//   for i < n: { for j < m: h = tanh(h * w);  <after>; }  loss = h
std::string NestedWhileOfPaddlePaddle(const std::string& after, const std::string& gradients) {
  return R"(program {
    block 0 {
      var x float64 [1] var w float64 [1] var n int64 [1] var m int64 [1]
      var i int64 [1] var h float64 [1] var go bool [1] var scopes step_scopes float32 []
      var loss float64 [] var "loss@GRAD" float64 [] var "h@GRAD" float64 [1]
      var "w@GRAD" float64 [1] var "x@GRAD" float64 [1]
      {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
      {Out: [h]} = assign(X: [x])
      {Out: [go]} = less_than(X: [i], Y: [n])
      {Out: [h, go, i], StepScopes: [scopes]} = while(Condition: [go], X: [h, w, m, i, n])
          {sub_block = block 1}
      {Out: [loss]} = reduce_sum(X: [h]) {reduce_all = true}
      {Out: ["loss@GRAD"]} = fill_any_like(X: [loss]) {value = 1.0, op_role = 1}
      {"X@GRAD": ["h@GRAD"]} = reduce_sum_grad(X: [h], "Out@GRAD": ["loss@GRAD"])
          {reduce_all = true, op_role = 1}
      {"X@GRAD": ["h@GRAD", "w@GRAD", "@EMPTY@", "@EMPTY@", "@EMPTY@"]} = while_grad(
          X: [h, w, m, i, n], Out: [h, go, i], "Out@GRAD": ["h@GRAD"], StepScopes: [scopes])
          {original_output_grad = strings ["h@GRAD"], sub_block = block 3, op_role = 1}
      {Out: ["x@GRAD"]} = assign(X: ["h@GRAD"]) {op_role = 1}
    }
    block 1 parent=0 {
      var j int64 [1] var go_on bool [1] var inner step_scopes float32 [] var i2 int64 [1] var go2 bool [1]
      var a float64 [1] var b float64 [1]
      {Out: [j]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
      {Out: [go_on]} = less_than(X: [j], Y: [m])
      {Out: [h, j, go_on], StepScopes: [inner]} = while(Condition: [go_on], X: [h, j, m, w])
          {sub_block = block 2}
  )" + after +
         R"(
      {Out: [i2]} = scale(X: [i]) {scale = 1.0, bias = 1.0}
      {Out: [go2]} = less_than(X: [i2], Y: [n])
      {Out: [i]} = assign(X: [i2])
      {Out: [go]} = assign(X: [go2])
    }
    block 2 parent=1 {
      var j2 int64 [1] var hw float64 [1] var t float64 [1] var go3 bool [1]
      {Out: [j2]} = scale(X: [j]) {scale = 1.0, bias = 1.0}
      {Out: [hw]} = elementwise_mul(X: [h], Y: [w])
      {Out: [t]} = tanh(X: [hw])
      {Out: [go3]} = less_than(X: [j2], Y: [m])
      {Out: [j]} = assign(X: [j2])
      {Out: [h]} = assign(X: [t])
      {Out: [go_on]} = assign(X: [go3])
    }
    block 3 parent=0 forward=1 {
      var "h@GRAD@0" float64 [1] var "h@GRAD@1" float64 [1] var "a@GRAD" float64 [1]
      var "w@GRAD" float64 [1]
  )" + gradients +
         R"(
      {"X@GRAD": ["h@GRAD", "@EMPTY@", "@EMPTY@", "w@GRAD"]} = while_grad(
          X: [h, j, m, w], Out: [h, j, go_on], "Out@GRAD": ["h@GRAD"], StepScopes: [inner])
          {original_output_grad = strings ["h@GRAD"], sub_block = block 4}
    }
    block 4 parent=3 forward=2 {
      var "t@GRAD" float64 [1] var "hw@GRAD" float64 [1] var "w@GRAD" float64 [1]
      {Out: ["t@GRAD"]} = assign(X: ["h@GRAD"])
      {"X@GRAD": ["hw@GRAD"]} = tanh_grad(Out: [t], "Out@GRAD": ["t@GRAD"])
      {"X@GRAD": ["h@GRAD"], "Y@GRAD": ["w@GRAD"]} = elementwise_mul_grad(
          X: [h], Y: [w], "Out@GRAD": ["hw@GRAD"])
    }
  })";
}

// The loss and the gradients by x and w.
std::vector<double> LossAndGradients(Executor* executor, const std::string& text, double x,
                                     double w) {
  const auto number = [](double value) { return Tensor::FromValues<double>({1}, {value}); };
  const auto count = [](int64_t value) { return Tensor::FromValues<int64_t>({1}, {value}); };
  std::vector<double> values;
  for (const Tensor& value :
       executor->Run(*ParseProgramText(text),
                     {{"x", number(x)}, {"w", number(w)}, {"n", count(3)}, {"m", count(2)}},
                     {"loss", "x@GRAD", "w@GRAD"})) {
    values.push_back(value.Item<double>());
  }
  return values;
}

void ExpectTrueGradients(const std::string& text) {
  Executor executor(Place::Cpu());
  const std::vector<double> found = LossAndGradients(&executor, text, 0.4, 1.7);
  constexpr double kStep = 1e-6;
  const auto slope = [&](double dx, double dw) {
    return (LossAndGradients(&executor, text, 0.4 + dx, 1.7 + dw)[0] -
            LossAndGradients(&executor, text, 0.4 - dx, 1.7 - dw)[0]) /
           (2 * kStep);
  };
  EXPECT_NEAR(found[1], slope(kStep, 0), 1e-7);
  EXPECT_NEAR(found[2], slope(0, kStep), 1e-7);
  EXPECT_GT(std::abs(found[1]), 0.1);
  EXPECT_GT(std::abs(found[2]), 0.1);
}

constexpr const char* kSquare = R"(
      {Out: [a]} = elementwise_mul(X: [h], Y: [h])
      {Out: [h]} = assign(X: [a]))";
constexpr const char* kGradientOfSquare = R"(
      {Out: ["a@GRAD"]} = assign(X: ["h@GRAD"])
      {"X@GRAD": ["h@GRAD@0"], "Y@GRAD": ["h@GRAD@1"]} = elementwise_mul_grad(
          X: [h], Y: [h], "Out@GRAD": ["a@GRAD"])
      {Out: ["h@GRAD"]} = sum(X: ["h@GRAD@0", "h@GRAD@1"]))";

// PaddlePaddle computes other gradients: its gradient op finds h as the last iteration left it.
TEST(LoopGradients, OfPaddlePaddlesFindWhatTheForwardOpHasRead) {
  ExpectTrueGradients(NestedWhileOfPaddlePaddle(kSquare, kGradientOfSquare));
}

TEST(LoopGradients, OfPaddlePaddlesComeInTheOppositeOrderOfTheirForwardOps) {
  const std::string twice = StrCat(kSquare, "\n", kSquare);
  ExpectTrueGradients(
      NestedWhileOfPaddlePaddle(twice, StrCat(kGradientOfSquare, "\n", kGradientOfSquare)));
  Executor executor(Place::Cpu());
  EXPECT_THAT(
      ErrorText([&] {
        LossAndGradients(&executor, NestedWhileOfPaddlePaddle(twice, kGradientOfSquare), 0.3, 0.7);
      }),
      ::testing::HasSubstr("elementwise_mul_grad: is the gradient of one of 2 ops that have the "
                           "same variables"));
}

TEST(LoopGradients, OfPaddlePaddlesRefuseANameThatMeansTwoValues) {
  Executor executor(Place::Cpu());
  const std::string text = NestedWhileOfPaddlePaddle(
      "{Out: [h]} = p_norm(X: [h]) {porder = 2.0, axis = -1, keepdim = true}",
      R"({"X@GRAD": ["h@GRAD"]} = p_norm_grad(X: [h], Out: [h], "Out@GRAD": ["h@GRAD"])
         {porder = 2.0, axis = -1, keepdim = true})");
  EXPECT_THAT(ErrorText([&] { LossAndGradients(&executor, text, 0.3, 0.7); }),
              ::testing::HasSubstr("p_norm_grad: reads \"h\" as it was before and after p_norm"));
}

}  // namespace
}  // namespace skiff
