#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/transpiler/fuse_optimizer_pass.h"
#include "tests/framework/transpiler/optimizer_program.h"

namespace skiff {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// The last op, which is an update, after the pass.
std::string UpdateAfter(const std::string& ops) {
  return OpsAfter(FuseOptimizerPass(), ops).back();
}

void ExpectLeft(const std::string& ops) {
  std::vector<std::string> before;
  const auto program = OptimizerProgram(ops);
  for (const auto& op : program->root()->ops()) {
    if (op->role() == 2) op->attrs.erase("op_role");
    before.push_back(PrintOp(*op));
  }
  EXPECT_THAT(OpsAfter(FuseOptimizerPass(), ops), ElementsAreArray(before));
}

constexpr const char* kDecay = R"({Out: ["t1"]} = scale(X: ["w1"]) {scale = 0.25}
                                  {Out: ["t2"]} = sum(X: ["g1", "t1"]))";
constexpr const char* kUpdateByT2 =
    R"({ParamOut: ["w1"]} = sgd(Param: ["w1"], Grad: ["t2"], LearningRate: ["rate"]))";

std::string UpdateBy(const std::string& gradient) {
  return R"({ParamOut: ["w1"]} = sgd(Param: ["w1"], Grad: [")" + gradient +
         R"("], LearningRate: ["rate"]))";
}

TEST(FuseOptimizerPass, FoldsL2Decay) {
  EXPECT_EQ(
      UpdateAfter(StrCat(kDecay, kUpdateByT2)),
      UpdateBy("g1") + R"( {regularization_coeff = 0.25, regularization_method = "l2_decay"})");
}

TEST(FuseOptimizerPass, FoldsL1Decay) {
  EXPECT_EQ(
      UpdateAfter(R"({Out: ["t3"]} = sign(X: ["w1"])
                           {Out: ["t1"]} = scale(X: ["t3"]) {scale = 0.25}
                           {Out: ["t2"]} = sum(X: ["g1", "t1"]))" +
                  UpdateBy("t2")),
      UpdateBy("g1") + R"( {regularization_coeff = 0.25, regularization_method = "l1_decay"})");
}

TEST(FuseOptimizerPass, FoldsRescalingClippingAndDecayInThisOrder) {
  EXPECT_EQ(
      UpdateAfter(R"({Out: ["t4"]} = scale(X: ["g1"]) {scale = 0.5}
                     {Out: ["t3"]} = elementwise_mul(X: ["t4"], Y: ["n1"])
                     {Out: ["t1"]} = scale(X: ["w1"]) {scale = 0.25}
                     {Out: ["t2"]} = sum(X: ["t3", "t1"]))" +
                  UpdateBy("t2")),
      R"({ParamOut: ["w1"]} = sgd(Param: ["w1"], Grad: ["g1"], LearningRate: ["rate"], )"
      R"(GradScale: ["n1"]) {regularization_coeff = 0.25, regularization_method = "l2_decay", )"
      R"(rescale_grad = 0.5})");
}

// Clipping behind decay is another formula.
TEST(FuseOptimizerPass, KeepsWhatComesInAnotherOrder) {
  EXPECT_EQ(UpdateAfter(StrCat(kDecay, R"({Out: ["t3"]} = elementwise_mul(X: ["t2"], Y: ["n1"]))",
                               UpdateBy("t3"))),
            R"({ParamOut: ["w1"]} = sgd(Param: ["w1"], Grad: ["t2"], LearningRate: ["rate"], )"
            R"(GradScale: ["n1"]))");
}

TEST(FuseOptimizerPass, MakesOneNormOfMany) {
  const std::vector<std::string> ops =
      OpsAfter(FuseOptimizerPass(), R"({Out: ["n1"]} = squared_l2_norm(X: ["g1"])
                                       {Out: ["n2"]} = squared_l2_norm(X: ["g2"])
                                       {Out: ["n3"]} = sum(X: ["n1", "n2"]))");
  EXPECT_EQ(ops[2], R"({Out: ["n3"]} = squared_global_norm(X: ["g1", "g2"]))");
}

// The fold would read a later value, or add another parameter's decay.
TEST(FuseOptimizerPass, KeepsWhatAnOpInBetweenChanges) {
  ExpectLeft(StrCat(kDecay, R"({Out: ["w1"]} = scale(X: ["w1"]) {scale = 0.5})", kUpdateByT2));
  ExpectLeft(StrCat(kDecay, R"({Out: ["g1"]} = scale(X: ["g1"]) {scale = 0.5})", kUpdateByT2));
  ExpectLeft(R"({Out: ["t1"]} = elementwise_mul(X: ["g1"], Y: ["n1"])
                {Out: ["n1"]} = scale(X: ["n2"]))" +
             UpdateBy("t1"));
  ExpectLeft(R"({Out: ["t1"]} = scale(X: ["w2"]) {scale = 0.25}
                {Out: ["t2"]} = sum(X: ["g1", "t1"]))" +
             UpdateBy("t2"));
  ExpectLeft(R"({Out: ["n1"]} = squared_l2_norm(X: ["g1"])
                {Out: ["n2"]} = squared_l2_norm(X: ["g2"])
                {Out: ["g2"]} = scale(X: ["g1"])
                {Out: ["n3"]} = sum(X: ["n1", "n2"]))");
}

TEST(FuseOptimizerPass, KeepsWhatIsNoDecayAndNoScale) {
  ExpectLeft(R"({Out: ["t1"]} = scale(X: ["w1"]) {bias = 1.0, scale = 0.25}
                {Out: ["t2"]} = sum(X: ["g1", "t1"]))" +
             UpdateBy("t2"));
  ExpectLeft(R"({Out: ["t1"]} = scale(X: ["w1"], ScaleTensor: ["n1"])
                {Out: ["t2"]} = sum(X: ["g1", "t1"]))" +
             UpdateBy("t2"));
  ExpectLeft(R"({Out: ["t1"]} = elementwise_mul(X: ["g1"], Y: ["g2"]))" + UpdateBy("t1"));
  ExpectLeft(R"({Out: ["t2"]} = sum(X: ["g1", "g2", "g3"]))" + UpdateBy("t2"));
  ExpectLeft(R"({Out: ["t1"]} = scale(X: ["w1"]) {op_role = 1, scale = 0.25}
                {Out: ["t2"]} = sum(X: ["g1", "t1"]) {op_role = 1})" +
             UpdateBy("t2"));
}

TEST(FuseOptimizerPass, ReportsWhatItFolded) {
  const PassReport report = ReportOf(FuseOptimizerPass(), StrCat(kDecay, kUpdateByT2));
  EXPECT_EQ(report.changes, 1);
  EXPECT_THAT(report.summary, HasSubstr("1 decays and 0 scales folded into updates"));
}

}  // namespace
}  // namespace skiff
