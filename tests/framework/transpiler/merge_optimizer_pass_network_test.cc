#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/transpiler/merge_optimizer_pass.h"
#include "tests/framework/transpiler/optimizer_program.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<std::string> Merged(const std::string& ops) {
  return OpsAfter(MergeOptimizerPass(), ops);
}

std::string Sgd(const std::string& w, const std::string& g, const std::string& rate = "rate") {
  return "{ParamOut: [\"" + w + "\"]} = sgd(Param: [\"" + w + "\"], Grad: [\"" + g +
         "\"], LearningRate: [\"" + rate + "\"])";
}

void ExpectUnchanged(const std::vector<std::string>& ops) {
  std::string text;
  for (const std::string& op : ops) text += "\n" + op;
  EXPECT_THAT(Merged(text), ElementsAreArray(ops));
}

TEST(MergeOptimizerPass, MakesOneOpOfUpdatesThatAreAlike) {
  EXPECT_THAT(Merged(Sgd("w1", "g1") + Sgd("w2", "g2") + Sgd("w3", "g3")),
              ElementsAre(R"({ParamOut: ["w1", "w2", "w3"]} = sgd(Param: ["w1", "w2", "w3"], )"
                          R"(Grad: ["g1", "g2", "g3"], LearningRate: ["rate"]))"));
}

TEST(MergeOptimizerPass, MakesAGroupOfEachLearningRateAndDtype) {
  EXPECT_THAT(
      Merged(Sgd("w1", "g1") + Sgd("w2", "g2", "slow") + Sgd("w64", "g64") + Sgd("w3", "g3")),
      ElementsAre(Sgd("w2", "g2", "slow"), Sgd("w64", "g64"),
                  R"({ParamOut: ["w1", "w3"]} = sgd(Param: ["w1", "w3"], )"
                  R"(Grad: ["g1", "g3"], LearningRate: ["rate"]))"));
}

TEST(MergeOptimizerPass, GivesFluidsMergedMomentumTheDecayOfEach) {
  const std::string shared =
      R"(LearningRate: ["rate"]) {mu = 0.5, op_role = 2, regularization_coeff = )";
  EXPECT_THAT(
      Merged(R"({ParamOut: ["w1"], VelocityOut: ["v1"]} = momentum(Param: ["w1"], Grad: ["g1"], )"
             R"(Velocity: ["v1"], )" +
             shared +
             R"(0.25, regularization_method = "l2_decay"}
                {ParamOut: ["w2"], VelocityOut: ["v2"]} = momentum(Param: ["w2"], Grad: ["g2"], )"
             R"(Velocity: ["v2"], )" +
             shared + "0.0}"),
      ElementsAre(
          R"({ParamOut: ["w1", "w2"], VelocityOut: ["v1", "v2"]} = merged_momentum()"
          R"(Param: ["w1", "w2"], Grad: ["g1", "g2"], Velocity: ["v1", "v2"], )"
          R"(LearningRate: ["rate"]) {mu = 0.5, regularization_coeff = floats [0.25, 0.0], )"
          R"(regularization_method = strings ["l2_decay", ""]})"));
}

TEST(MergeOptimizerPass, TellsAttributesApart) {
  const auto momentum = [](const std::string& n, const std::string& mu) {
    return "{ParamOut: [\"w" + n + "\"], VelocityOut: [\"v" + n + "\"]} = momentum(Param: [\"w" +
           n + "\"], Grad: [\"g" + n + "\"], Velocity: [\"v" + n +
           "\"], LearningRate: [\"rate\"]) {mu = " + mu + "}";
  };
  ExpectUnchanged({momentum("1", "0.5"), momentum("2", "0.25")});
}

// The op in between would see w1 before its update, or another gradient.
TEST(MergeOptimizerPass, MovesNoUpdateAcrossWhatReadsOrWritesItsVariables) {
  ExpectUnchanged({Sgd("w1", "g1"), R"({Out: ["t1"]} = scale(X: ["w1"]))", Sgd("w2", "g2")});
  ExpectUnchanged({Sgd("w1", "g1"), R"({Out: ["g1"]} = scale(X: ["t1"]))", Sgd("w2", "g2")});
  ExpectUnchanged({Sgd("w1", "g1"), R"({Out: ["rate"]} = scale(X: ["rate"]))", Sgd("w2", "g2")});
  ExpectUnchanged({Sgd("w1", "g1"), Sgd("w1", "g1")});
}

TEST(MergeOptimizerPass, BeginsAnotherGroupBehindSuchAnOp) {
  const std::vector<std::string> merged = Merged(
      Sgd("w1", "g1") + R"({Out: ["t1"]} = scale(X: ["w1"]))" + Sgd("w2", "g2") + Sgd("w3", "g3"));
  ASSERT_EQ(merged.size(), 3U);
  EXPECT_EQ(merged[0], Sgd("w1", "g1"));
  EXPECT_THAT(merged[2], HasSubstr(R"(Param: ["w2", "w3"])"));
}

TEST(MergeOptimizerPass, MergesOpsOnLists) {
  const std::string list =
      R"({ParamOut: ["w1", "w2"]} = sgd(Param: ["w1", "w2"], Grad: ["g1", "g2"], )"
      R"(LearningRate: ["rate"]))";
  EXPECT_THAT(Merged(list + Sgd("w3", "g3")),
              ElementsAre(HasSubstr(R"(Param: ["w1", "w2", "w3"])")));
  ExpectUnchanged({R"({ParamOut: ["w1", "w2"]} = sgd(Param: ["w1", "w2"], Grad: ["g1", "g2"], )"
                   R"(LearningRate: ["rate", "slow"]))",
                   Sgd("w3", "g3")});
}

TEST(MergeOptimizerPass, LeavesSparseGradientsAloneAndSaysSo) {
  const std::string ops = Sgd("w1", "g1") + Sgd("rows", "sparse") + Sgd("w2", "g2");
  EXPECT_THAT(Merged(ops), ElementsAre(Sgd("rows", "sparse"), HasSubstr(R"(["w1", "w2"])")));
  const PassReport report = ReportOf(MergeOptimizerPass(), ops);
  EXPECT_EQ(report.changes, 2);
  EXPECT_EQ(report.summary, "2 updates in 1 ops, 1 with sparse gradients stay as they are");
}

TEST(MergeOptimizerPass, JoinsTheRoleVariables) {
  const auto program = OptimizerProgram(Sgd("w1", "g1") + Sgd("w2", "g2"));
  for (const auto& op : program->root()->ops()) {
    op->SetAttr("op_role_var", std::vector<std::string>{op->Input("Param")[0], "g"});
  }
  MergeOptimizerPass().Apply(DefaultOpRegistry(), program.get());
  ASSERT_EQ(program->root()->ops().size(), 1U);
  EXPECT_THAT(program->root()->ops()[0]->Attr<std::vector<std::string>>("op_role_var"),
              ElementsAre("w1", "g", "w2", "g"));
}

}  // namespace
}  // namespace skiff
