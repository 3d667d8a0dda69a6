#include "framework/transpiler/early_update_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

// The first output of each op after the pass; `blocks` are the sub-blocks.
std::vector<std::string> OrderAfterPass(const std::string& ops, const std::string& blocks = "") {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  OpDef printing = registry.Get("tiny_copy");
  printing.type = "printing";
  printing.has_side_effect = true;
  registry.Add(printing);
  std::string text = "program { block 0 {";
  for (const char* name : {"x", "y", "z", "v", "w", "w1", "w2", "g", "g1", "g2", "l"}) {
    text += StrCat(" var ", name, " float32 [1]");
  }
  const auto program = ParseProgramText(text + ops + "}" + blocks + "}");
  EarlyUpdatePass().Apply(registry, program.get());
  std::vector<std::string> order;
  for (const auto& op : program->root()->ops()) order.push_back(op->OutputNames()[0]);
  return order;
}

TEST(EarlyUpdatePass, PutsEachUpdateAfterItsGradient) {
  EXPECT_THAT(OrderAfterPass(R"(
    {Out: ["g2"]} = tiny_copy(X: ["x"])
    {Out: ["g1"]} = tiny_copy(X: ["g2"])
    {ParamOut: ["w1"]} = tiny_sgd(Param: ["w1"], Grad: ["g1"]) {op_role = 2}
    {ParamOut: ["w2"]} = tiny_sgd(Param: ["w2"], Grad: ["g2"]) {op_role = 2})"),
              ElementsAre("g2", "w2", "g1", "w1"));
}

TEST(EarlyUpdatePass, NeverCrossesALaterReadOfTheParameter) {
  EXPECT_THAT(OrderAfterPass(R"(
    {Out: ["g2"]} = tiny_copy(X: ["x"])
    {Out: ["g1"]} = tiny_add(X: ["g2"], Y: ["w2"])
    {Out: ["y"]} = tiny_copy(X: ["g1"])
    {ParamOut: ["w2"]} = tiny_sgd(Param: ["w2"], Grad: ["g2"]) {op_role = 2})"),
              ElementsAre("g2", "g1", "w2", "y"));
}

TEST(EarlyUpdatePass, NeverCrossesARewriteOfTheGradient) {
  EXPECT_THAT(OrderAfterPass(R"(
    {Out: ["g"]} = tiny_copy(X: ["x"])
    {Out: ["y"]} = tiny_copy(X: ["x"])
    {Out: ["g"]} = tiny_scale(X: ["g"]) {factor = 0.5}
    {Out: ["z"]} = tiny_copy(X: ["y"])
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["g"]) {op_role = 2})"),
              ElementsAre("g", "y", "g", "w", "z"));
}

TEST(EarlyUpdatePass, KeepsTheOrderOfUpdatesOfOneVariable) {
  EXPECT_THAT(OrderAfterPass(R"(
    {Out: ["g"]} = tiny_copy(X: ["x"])
    {Out: ["y"]} = tiny_copy(X: ["x"])
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["g"]) {op_role = 2}
    {Out: ["w"]} = tiny_scale(X: ["w"]) {factor = 0.5, op_role = 2}
    {Out: ["v"]} = tiny_copy(X: ["w"]) {op_role = 2})"),
              ElementsAre("g", "w", "w", "v", "y"));
}

// What becomes of {g, l, w} if l is a loop over block 1, and then w is updated by g.
std::vector<std::string> OrderAroundALoop(const std::string& blocks) {
  return OrderAfterPass(R"(
    {Out: ["g"]} = tiny_copy(X: ["x"])
    {Out: ["l"]} = tiny_while() {sub_block = block 1}
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["g"]) {op_role = 2})",
                        blocks);
}

TEST(EarlyUpdatePass, CrossesASubBlockThatHasNothingToDoWithIt) {
  EXPECT_THAT(OrderAroundALoop("block 1 parent=0 { {Out: [y]} = tiny_add(X: [x], Y: [g]) }"),
              ElementsAre("g", "w", "l"));
}

TEST(EarlyUpdatePass, CrossesASubBlockThatMeansOtherVariablesByTheSameNames) {
  EXPECT_THAT(OrderAroundALoop(R"(block 1 parent=0 { var w float32 [1] var g float32 [1]
                                    {Out: [g]} = tiny_copy(X: [w])
                                    {Out: [w]} = tiny_copy(X: [g]) })"),
              ElementsAre("g", "w", "l"));
}

TEST(EarlyUpdatePass, NeverCrossesASubBlockThatReadsTheParameter) {
  EXPECT_THAT(OrderAroundALoop("block 1 parent=0 { {Out: [y]} = tiny_copy(X: [w]) }"),
              ElementsAre("g", "l", "w"));
  EXPECT_THAT(OrderAroundALoop("block 1 parent=0 { {} = tiny_while() {sub_block = block 2} }"
                               "block 2 parent=1 { {Out: [y]} = tiny_copy(X: [w]) }"),
              ElementsAre("g", "l", "w"));
}

TEST(EarlyUpdatePass, NeverCrossesASubBlockThatWritesTheGradientOrTheParameter) {
  EXPECT_THAT(OrderAroundALoop("block 1 parent=0 { {Out: [g]} = tiny_copy(X: [y]) }"),
              ElementsAre("g", "l", "w"));
  EXPECT_THAT(OrderAroundALoop("block 1 parent=0 { {Out: [w]} = tiny_copy(X: [y]) }"),
              ElementsAre("g", "l", "w"));
}

TEST(EarlyUpdatePass, NeverCrossesASideEffectInASubBlock) {
  EXPECT_THAT(OrderAroundALoop("block 1 parent=0 { {Out: [y]} = printing(X: [y]) }"),
              ElementsAre("g", "l", "w"));
  EXPECT_THAT(OrderAroundALoop("block 1 parent=0 { {Out: [y]} = unknown(X: [y]) }"),
              ElementsAre("g", "l", "w"));
}

TEST(EarlyUpdatePass, NeverCrossesAGradientBlockThatReadsTheParameter) {
  const std::string ops = R"(
    {Out: ["l"]} = tiny_while() {sub_block = block 1}
    {Out: ["g"]} = tiny_copy(X: ["x"])
    {Out: ["y"]} = tiny_while_grad() {sub_block = block 2}
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["g"]) {op_role = 2})";
  const std::string forward =
      "block 1 parent=0 { var h float32 [1] {Out: [h]} = tiny_copy(X: [w]) }";
  EXPECT_THAT(OrderAfterPass(ops, forward + R"(block 2 parent=0 forward=1 { var dh float32 [1]
                                                 {Out: [dh]} = tiny_add(X: [h], Y: [w]) })"),
              ElementsAre("l", "g", "y", "w"));
  EXPECT_THAT(OrderAfterPass(ops, forward + R"(block 2 parent=0 forward=1 { var dh float32 [1]
                                                 {Out: [dh]} = tiny_copy(X: [h]) })"),
              ElementsAre("l", "g", "w", "y"));
}

TEST(EarlyUpdatePass, MovesUpdatesThatStandInASubBlock) {
  EXPECT_THAT(OrderAfterPass(R"(
    {Out: ["g"]} = tiny_copy(X: ["x"])
    {Out: ["y"]} = tiny_copy(X: ["x"])
    {Out: ["z"]} = tiny_copy(X: ["x"])
    {Out: ["w"]} = tiny_while() {sub_block = block 1, op_role = 2})",
                             R"(block 1 parent=0 {
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["g"]) {op_role = 2} })"),
              ElementsAre("g", "w", "y", "z"));
}

TEST(EarlyUpdatePass, RefusesAProgramThatIsNotWellFormed) {
  EXPECT_THROW(OrderAroundALoop(""), Error);
  EXPECT_THROW(OrderAfterPass("{Out: [undeclared]} = tiny_copy(X: [x])"), Error);
}

}  // namespace
}  // namespace skiff
