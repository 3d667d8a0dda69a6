#include "framework/executor/lowering/plan_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/analysis/verifier.h"
#include "framework/base/str_cat.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "tests/framework/ir/live_memory.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Of a program in which VerifyProgram finds nothing. "maybe: …" if it isn't certain.
std::string WhyNot(const std::string& text) {
  const auto program = ParseProgramText(StrCat("program { ", text, " }"));
  std::vector<std::string> warnings;
  EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), *program, {.warnings = &warnings}), IsEmpty());
  const std::optional<NoPlan> none = FindNoPlan(DefaultOpRegistry(), *program);
  return none ? (none->is_certain ? "" : "maybe: ") + none->why : "";
}

TEST(PlanCheck, FindsAPlanForSomeBatch) {
  // Of 60 rows, for example.
  EXPECT_EQ(WhyNot(R"(block 0 {
              var x float32 [-1, 4]
              var y float32 [-1, 5, 4]
              param w float32 [4, 2] persistable
              var z float32 [-1, 5, 2]
              {Out: [y]} = reshape2(X: [x]) {shape = ints [-1, 5, 4]}
              {Out: [z]} = mul(X: [y], Y: [w]) {x_num_col_dims = 2, y_num_col_dims = 1}
            })"),
            "");
}

// A batch of 14 rows has a plan, but nobody has tried it.
TEST(PlanCheck, IsNotCertainOfSizesThatItHasNotTried) {
  EXPECT_THAT(WhyNot(R"(block 0 {
                var x float32 [-1, 4]
                var y float32 [7, 8]
                {Out: [y]} = reshape2(X: [x]) {shape = ints [7, 8]}
              })"),
              AllOf(StartsWith("maybe: no plan with 2, 1, 3, "),
                    HasSubstr("with 2: reshape2 (block 0, op #0)")));
}

// Rows of 4 columns beside rows of as many as the batch has. With 4 there is a plan.
TEST(PlanCheck, IsNotCertainOfElementsWhoseSizesItHasNotTried) {
  EXPECT_THAT(WhyNot(R"(block 0 {
                var x float32 [-1, 4]
                var other float32 [-1, -1]
                var i int64 [1]
                var cond bool [1]
                var a lod_tensor_array float32 [-1, 4]
                var y float32 [-1, 4]
                var s step_scopes float32 []
                {Out: [a]} = write_to_array(X: [x], I: [i])
                {Out: [a]} = write_to_array(X: [other], I: [i])
                {Out: [y], Scope: [s]} = conditional_block(Cond: [cond], Input: [a, i]) {is_scalar_condition = true, sub_block = block 1}
              }
              block 1 parent=0 {
                {Out: [y]} = read_from_array(X: [a], I: [i])
              })"),
              AllOf(StartsWith("maybe: no plan with 2, 1, 3, "),
                    HasSubstr("the shape [2, -1] or LoD of \"y\" depends on data")));
}

// The branch inside may leave `state` as it was.
TEST(PlanCheck, FindsAPlanForAVariableOfTheScopeThatABranchNames) {
  EXPECT_EQ(WhyNot(R"(block 0 {
              var cond bool [1]
              var x float32 [2]
              var s step_scopes float32 []
              param state float32 [2] persistable
              var y float32 [2]
              {Scope: [s]} = conditional_block(Cond: [cond], Input: [cond]) {is_scalar_condition = true, sub_block = block 1}
              {Out: [y]} = elementwise_add(X: [x], Y: [state])
            }
            block 1 parent=0 {
              var t step_scopes float32 []
              var z bool [1]
              {Out: [state], Scope: [t]} = conditional_block(Cond: [cond], Input: [cond]) {is_scalar_condition = true, sub_block = block 2}
            }
            block 2 parent=1 {
              {Out: [z]} = assign(X: [cond])
            })"),
            "");
}

TEST(PlanCheck, IsCertainOfSizesThatTheProgramGives) {
  EXPECT_THAT(WhyNot(R"(block 0 {
                var x float32 [7, 1]
                var w float32 [3, 4] persistable
                var y float32 [7, -1]
                var z float32 [7, -1]
                {Out: [y]} = concat(X: [x, x, x]) {axis = 1}
                {Out: [z]} = mul(X: [y], Y: [w]) {x_num_col_dims = 1, y_num_col_dims = 1}
              })"),
              "");
  EXPECT_THAT(WhyNot(R"(block 0 {
                var x float32 [7, 1]
                var w float32 [3, 4] persistable
                var n int32 [2]
                var y float32 [-1, -1]
                var z float32 [-1, -1]
                {Out: [n]} = shape(Input: [x])
                {Out: [y]} = reshape2(X: [x], Shape: [n]) {shape = ints [-1, 1]}
                {Out: [z]} = elementwise_add(X: [y], Y: [w]) {axis = -1}
              })"),
              StartsWith("elementwise_add (block 0, op #2)"));
}

TEST(PlanCheck, GivesRaggedFeedsSequencesOfOneRow) {
  EXPECT_EQ(WhyNot(R"(block 0 {
      var x float32 [-1, 4] lod=2
      var label float32 [-1, 4]
      var f float32 [1]
      var id int64 [1] persistable
      var hits bool [1]
      var last float32 [-1, 4]
      var d float32 [-1, 4]
      {Out: [x]} = feed(X: [f]) {col = 0}
      {Out: [last]} = sequence_pool(X: [x]) {pooltype = "LAST"}
      {Out: [d]} = elementwise_sub(X: [last], Y: [label]) {axis = -1}
      {Out: [hits]} = equal(X: [id], Y: [id]) {axis = -1}
    })"),
            "");
}

// 200 feeds of 64 levels: with a sequence for each of their rows, 1 GB.
TEST(PlanCheck, TakesLittleMemoryForRaggedFeeds) {
  std::string text = "block 0 {\n var feed feed_minibatch float32 [] persistable\n";
  for (int i = 0; i < 200; ++i) {
    text += StrCat("var x", i, " float32 [10000, 1] lod=64\n",  //
                   "{Out: [x", i, "]} = feed(X: [feed]) {col = ", i, "}\n");
  }
  ResetPeak();
  const int64_t before = LiveBytes();
  EXPECT_EQ(WhyNot(text + "}"), "");
  EXPECT_LT(PeakBytes() - before, int64_t{200} << 20);
}

// Half of a program that is fed what the other half has computed.
TEST(PlanCheck, FeedsGradients) {
  const auto gradient_op = [](const std::string& feed_op) {
    return StrCat(R"(block 0 {
      var feed feed_minibatch float32 [] persistable
      var y float32 [-1, 4]
      var "y@GRAD" float32 [-1, 4]
      var "x@GRAD" float32 [-1, 4]
      )",
                  feed_op, R"(
      {"X@GRAD": ["x@GRAD"]} = tanh_grad(Out: [y], "Out@GRAD": ["y@GRAD"])
    })");
  };
  EXPECT_EQ(WhyNot(gradient_op("")), "");
  EXPECT_EQ(WhyNot(gradient_op(R"({Out: ["y@GRAD"]} = feed(X: [feed]) {col = 0})")), "");
}

// With zeros in its place there is a plan, but there would be none with a feed of any size that is
// tried.
TEST(PlanCheck, LeavesOutAGradientThatOnlyTheGradientOpOfABlockReads) {
  EXPECT_EQ(WhyNot(R"(block 0 {
      var x float32 [5, 2]
      var o float32 [5, 2]
      var s step_scopes float32 []
      var "o@GRAD" float32 [-1, 2]
      var "x@GRAD" float32 [5, 2]
      {outputs: [o], step_scopes: [s]} = recurrent(inputs: [x]) {sub_block = block 1}
      {"inputs@GRAD": ["x@GRAD"]} = recurrent_grad(inputs: [x], outputs: [o], "outputs@GRAD": ["o@GRAD"], step_scopes: [s]) {sub_block = block 2}
    }
    block 1 parent=0 {
      var x float32 [2]
      var o float32 [2]
      {Out: [o]} = scale(X: [x]) {scale = 2.0}
    }
    block 2 parent=0 forward=1 {
      var "o@GRAD" float32 [2]
      var "x@GRAD" float32 [2]
      {Out: ["x@GRAD"]} = scale(X: ["o@GRAD"]) {scale = 2.0}
    })"),
            "");
}

std::string Loop(const std::string& before, const std::string& body) {
  return StrCat(R"(block 0 {
    var x float32 [3]
    var i int64 [1]
    var n int64 [1]
    var cond bool [1]
    var a lod_tensor_array float32 [3]
    var r float32 [3]
    var s step_scopes float32 []
    {Out: [x]} = fill_constant() {shape = longs [3], dtype = 5, value = 1.0}
    {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [n]} = fill_constant() {shape = longs [1], dtype = 3, value = 4.0}
    {Out: [cond]} = less_than(X: [i], Y: [n])
    )",
                before, R"(
    {Out: [i, cond, x], StepScopes: [s]} = while(X: [i, n, x], Condition: [cond]) {sub_block = block 1}
  }
  block 1 parent=0 {
    var t float32 [-1]
    )",
                body, R"(
    {Out: [i]} = increment(X: [i]) {step = 1.0}
    {Out: [cond]} = less_than(X: [i], Y: [n])
  })");
}

TEST(PlanCheck, AsksWhatLoopsDemand) {
  EXPECT_EQ(WhyNot(Loop("", "{Out: [x]} = scale(X: [x]) {scale = 2.0}")), "");
  // What an iteration leaves has another shape than what it finds.
  EXPECT_THAT(WhyNot(Loop("", R"({Out: [t]} = concat(X: [x, x]) {axis = 0}
                                 {Out: [x]} = assign(X: [t]))")),
              AllOf(HasSubstr("while (block 0, op #4)"), HasSubstr("\"x\"")));
}

TEST(PlanCheck, AsksWhatArraysHold) {
  const std::string read = R"({Out: [t]} = read_from_array(X: [a], I: [i])
                              {Out: [x]} = assign(X: [t]))";
  EXPECT_EQ(WhyNot(Loop("{Out: [a]} = write_to_array(X: [x], I: [i])", read)), "");
  EXPECT_THAT(WhyNot(Loop("", read)), HasSubstr("no op before writes to the array"));
}

}  // namespace
}  // namespace skiff
