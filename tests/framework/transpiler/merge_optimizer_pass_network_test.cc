#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/transpiler/merge_optimizer_pass.h"
#include "tests/framework/transpiler/optimizer_program.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::AllOf;
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

TEST(MergeOptimizerPass, TakesMasterWeightsAlongAndTellsTheirGradientsApart) {
  const auto update = [](const std::string& n, const std::string& gradient) {
    return "{ParamOut: [\"b" + n + "\"], MasterParamOut: [\"m" + n + "\"]} = sgd(Param: [\"b" + n +
           "\"], Grad: [\"" + gradient + "\"], LearningRate: [\"rate\"], MasterParam: [\"m" + n +
           "\"]) {multi_precision = true}";
  };
  EXPECT_THAT(Merged(update("1", "bg1") + update("2", "bg2") + Sgd("w1", "g1")),
              ElementsAre(R"({ParamOut: ["b1", "b2"], MasterParamOut: ["m1", "m2"]} = sgd()"
                          R"(Param: ["b1", "b2"], Grad: ["bg1", "bg2"], LearningRate: ["rate"], )"
                          R"(MasterParam: ["m1", "m2"]) {multi_precision = true})",
                          Sgd("w1", "g1")));
  ExpectUnchanged({update("1", "bg1"), update("2", "g2")});
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

TEST(MergeOptimizerPass, LeavesOutWhatFluidsMergedAdamLacks) {
  const auto adam = [](const std::string& n) {
    return "{ParamOut: [\"w" + n + "\"], Moment1Out: [\"v" + n + "\"], Moment2Out: [\"v" + n +
           "\"]} = adam(Param: [\"w" + n + "\"], Grad: [\"g" + n + "\"], Moment1: [\"v" + n +
           "\"], Moment2: [\"v" + n +
           "\"], Beta1Pow: [\"rate\"], Beta2Pow: [\"rate\"], LearningRate: [\"slow\"]) {beta1 = "
           "0.5, lazy_mode = true, min_row_size_to_use_multithread = 7}";
  };
  EXPECT_THAT(Merged(adam("1") + adam("2")),
              ElementsAre(AllOf(HasSubstr("merged_adam("), HasSubstr(") {beta1 = 0.5}"))));
}

TEST(MergeOptimizerPass, TellsAttributesApart) {
  const auto momentum = [](const std::string& n, const std::string& mu) {
    return "{ParamOut: [\"w" + n + "\"], VelocityOut: [\"v" + n + "\"]} = momentum(Param: [\"w" +
           n + "\"], Grad: [\"g" + n + "\"], Velocity: [\"v" + n +
           "\"], LearningRate: [\"rate\"]) {mu = " + mu + "}";
  };
  ExpectUnchanged({momentum("1", "0.5"), momentum("2", "0.25")});
}

// The shape rule, which would refuse it too, runs after this pass.
TEST(MergeOptimizerPass, RefusesAnAttributeWithEntriesForOtherParameters) {
  const auto merged = [](const std::string& n, const std::string& m, const std::string& decay) {
    const std::string names = "[\"w" + n + "\", \"w" + m + "\"]";
    const std::string velocities = "[\"v" + n + "\", \"v" + m + "\"]";
    return "{ParamOut: " + names + ", VelocityOut: " + velocities +
           "} = merged_momentum(Param: " + names + ", Grad: [\"g" + n + "\", \"g" + m +
           "\"], Velocity: " + velocities +
           ", LearningRate: [\"rate\"]) {mu = 0.5, regularization_coeff = floats " + decay + "}";
  };
  EXPECT_THAT(ErrorText([&] {
                Merged(merged("1", "2", "[0.5, 0.25]") + merged("3", "3", "[0.5, 0.5, 1.0]"));
              }),
              HasSubstr("regularization_coeff has 3 entries, expected 1 for all or 2"));
}

// A default that is spelt out is none.
TEST(MergeOptimizerPass, TakesAnAttributeThatIsNotThereForItsDefault) {
  const auto momentum = [](const std::string& n, const std::string& attrs) {
    return "{ParamOut: [\"w" + n + "\"], VelocityOut: [\"v" + n + "\"]} = momentum(Param: [\"w" +
           n + "\"], Grad: [\"g" + n + "\"], Velocity: [\"v" + n +
           "\"], LearningRate: [\"rate\"]) {mu = 0.5" + attrs + "}";
  };
  EXPECT_THAT(Merged(momentum("1", "") + momentum("2", ", use_nesterov = false")),
              ElementsAre(HasSubstr(R"(Param: ["w1", "w2"])")));
  ExpectUnchanged({momentum("1", ""), momentum("2", ", use_nesterov = true")});
}

// In a list the power of w2 would take the place of that of w1.
TEST(MergeOptimizerPass, TellsApartWhichOutputsAreConnected) {
  const auto adam = [](const std::string& n, const std::string& power, const std::string& out) {
    return "{" + out + "Moment1Out: [\"v" + n + "\"], Moment2Out: [\"t" + n +
           "\"], ParamOut: [\"w" + n + "\"]} = adam(Param: [\"w" + n + "\"], Grad: [\"g" + n +
           "\"], Moment1: [\"v" + n + "\"], Moment2: [\"t" + n + "\"], Beta1Pow: [\"" + power +
           "\"], Beta2Pow: [\"n9\"], LearningRate: [\"rate\"])";
  };
  const auto program = OptimizerProgram(
      adam("1", "n1", "") + adam("2", "n2", R"(Beta1PowOut: ["n2"], )") + adam("3", "n3", ""));
  MergeOptimizerPass().Apply(DefaultOpRegistry(), program.get());
  const auto& ops = program->root()->ops();
  ASSERT_EQ(ops.size(), 2U);
  EXPECT_THAT(ops[0]->Output("Beta1PowOut"), ElementsAre("n2"));
  EXPECT_THAT(ops[0]->Output("ParamOut"), ElementsAre("w2"));
  EXPECT_THAT(ops[1]->Output("ParamOut"), ElementsAre("w1", "w3"));
}

// The op in between would see w1 before its update, or another gradient.
TEST(MergeOptimizerPass, MovesNoUpdateAcrossWhatReadsOrWritesItsVariables) {
  ExpectUnchanged({Sgd("w1", "g1"), R"({Out: ["t1"]} = scale(X: ["w1"]))", Sgd("w2", "g2")});
  ExpectUnchanged({Sgd("w1", "g1"), R"({Out: ["g1"]} = scale(X: ["t1"]))", Sgd("w2", "g2")});
  ExpectUnchanged({Sgd("w1", "g1"), R"({Out: ["rate"]} = scale(X: ["rate"]))", Sgd("w2", "g2")});
  ExpectUnchanged({Sgd("w1", "g1"), Sgd("w1", "g1")});
}

TEST(MergeOptimizerPass, BeginsAnotherGroupAfterSuchAnOp) {
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
  EXPECT_EQ(report.summary, "2 updates in 1 ops; left alone: rows (sparse gradient)");
}

TEST(MergeOptimizerPass, SaysWhyOthersStayAsTheyAre) {
  const std::string merged = Sgd("w1", "g1") + Sgd("w2", "g2");
  const auto summary = [](const std::string& ops) {
    return ReportOf(MergeOptimizerPass(), ops).summary;
  };
  EXPECT_EQ(summary(merged + Sgd("w3", "g3", "slow") + Sgd("w64", "g64")),
            "2 updates in 1 ops; left alone: w3 (another LearningRate), w64 (another dtype)");
  const std::string decays = R"( {regularization_coeff = 0.5, regularization_method = "l2_decay"})";
  EXPECT_EQ(summary(merged + Sgd("w3", "g3") + decays),
            "2 updates in 1 ops; left alone: w3 (another regularization_coeff, "
            "regularization_method)");
  EXPECT_EQ(summary(Sgd("w3", "g3") + R"({Out: ["t1"]} = scale(X: ["w3"]))" + merged),
            "2 updates in 1 ops; left alone: w3 (an op in between uses its variables)");
  EXPECT_EQ(summary(Sgd("w1", "g1")), "0 updates in 0 ops; left alone: w1 (no other sgd)");
  EXPECT_EQ(summary(merged + R"({ParamOut: ["w3", "v3"]} = sgd(Param: ["w3", "v3"], )"
                             R"(Grad: ["g3", "t3"], LearningRate: ["rate", "slow"]))"),
            "2 updates in 1 ops; left alone: w3 (LearningRate of several)");
  // A few names tell as much as all.
  EXPECT_EQ(summary(Sgd("w1", "g1", "n1") + Sgd("w2", "g2", "n2") + Sgd("w3", "g3", "n3") +
                    Sgd("v1", "t1", "n4") + Sgd("v2", "t2", "n5")),
            "0 updates in 0 ops; left alone: v1, v2, w1 and 2 more (another LearningRate)");
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
