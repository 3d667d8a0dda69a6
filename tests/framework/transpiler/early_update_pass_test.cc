#include "framework/transpiler/early_update_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/ir/text.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

// The first output of each op after the pass.
std::vector<std::string> OrderAfterPass(const std::string& ops) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  const auto program = ParseProgramText("program { block 0 {" + ops + "} }");
  EarlyUpdatePass().Apply(registry, program.get());
  std::vector<std::string> order;
  for (const auto& op : program->root()->ops()) order.push_back(op->OutputNames()[0]);
  return order;
}

TEST(EarlyUpdatePass, PutsEachUpdateBehindItsGradient) {
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

}  // namespace
}  // namespace skiff
