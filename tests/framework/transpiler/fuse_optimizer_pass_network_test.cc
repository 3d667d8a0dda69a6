#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
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

// Clipping after decay is another formula.
TEST(FuseOptimizerPass, KeepsWhatComesInAnotherOrder) {
  EXPECT_EQ(UpdateAfter(StrCat(kDecay, R"({Out: ["t3"]} = elementwise_mul(X: ["t2"], Y: ["n1"]))",
                               UpdateBy("t3"))),
            R"({ParamOut: ["w1"]} = sgd(Param: ["w1"], Grad: ["t2"], LearningRate: ["rate"], )"
            R"(GradScale: ["n1"]))");
}

std::string Adamax(const std::string& inputs, const std::string& outputs) {
  return "{" + outputs + R"(InfNormOut: ["v2"], MomentOut: ["v1"], ParamOut: ["w1"]} = )" +
         R"(adamax(Param: ["w1"], Grad: ["g1"], LearningRate: ["rate"], Moment: ["v1"], )" +
         R"(InfNorm: ["v2"], Beta1Pow: ["n1"])" + inputs + ") {beta1 = 0.5}";
}

constexpr const char* kPower = R"({Out: ["n1"]} = scale(X: ["n1"]) {scale = 0.5})";
constexpr const char* kGatedPower = R"({Out: ["n2"]} = scale(X: ["n1"]) {scale = 0.5}
    {Out: ["n1"]} = where(Condition: ["b"], X: ["n1"], Y: ["n2"]))";
constexpr const char* kSkip = R"(, SkipUpdate: ["b"])";

TEST(FuseOptimizerPass, MovesThePowerOfAdamaxOn) {
  for (const auto& [skip, power] : {std::pair{"", kPower}, std::pair{kSkip, kGatedPower}}) {
    const auto program = OptimizerProgram(Adamax(skip, "") + power);
    const PassReport report = FuseOptimizerPass().Apply(DefaultOpRegistry(), program.get());
    ASSERT_EQ(program->root()->ops().size(), 1U) << skip;
    EXPECT_EQ(program->root()->ops()[0]->Output("Beta1PowOut"), std::vector<std::string>{"n1"});
    EXPECT_EQ(report.changes, 1);
    EXPECT_THAT(report.summary, HasSubstr("1 powers"));
  }
}

// Another power, one that somebody reads in between, or one that moves on though the update is
// skipped.
TEST(FuseOptimizerPass, KeepsAnotherPowerOfAdamax) {
  const auto expect_left = [](const std::string& ops) {
    const auto program = OptimizerProgram(ops);
    const std::string before = PrintProgram(*program);
    FuseOptimizerPass().Apply(DefaultOpRegistry(), program.get());
    EXPECT_EQ(PrintProgram(*program), before);
  };
  const std::string plain = Adamax("", "");
  const std::string gated = Adamax(kSkip, "");
  expect_left(plain + R"({Out: ["n1"]} = scale(X: ["n1"]) {scale = 0.25})");
  expect_left(plain + R"({Out: ["n1"]} = scale(X: ["n1"]) {bias = 1.0, scale = 0.5})");
  expect_left(plain + R"({Out: ["n3"]} = scale(X: ["n1"]) {scale = 0.5})");
  expect_left(plain + R"({Out: ["n3"]} = scale(X: ["n1"]))" + kPower);
  expect_left(std::string(kPower) + plain);
  expect_left(gated + kPower);
  expect_left(plain + kGatedPower);
  expect_left(gated + kGatedPower + R"({Out: ["n3"]} = scale(X: ["n2"]))");
  expect_left(gated + R"({Out: ["n2"]} = scale(X: ["n1"]) {scale = 0.5}
    {Out: ["n1"]} = where(Condition: ["b"], X: ["n2"], Y: ["n1"]))");
}

TEST(FuseOptimizerPass, MakesOneNormOfMany) {
  const std::vector<std::string> ops =
      OpsAfter(FuseOptimizerPass(), R"({Out: ["n1"]} = squared_l2_norm(X: ["g1"])
                                       {Out: ["n2"]} = squared_l2_norm(X: ["g2"])
                                       {Out: ["n3"]} = sum(X: ["n1", "n2"]))");
  EXPECT_EQ(ops[2], R"({Out: ["n3"]} = squared_global_norm(X: ["g1", "g2"]))");
}

// dtypes as Fluid numbers them: 22 is bfloat16, 5 float32.
constexpr const char* kWidened =
    R"({Out: ["t4"]} = cast(X: ["bg1"]) {in_dtype = 22, out_dtype = 5})";

std::string MasterUpdateBy(const std::string& gradient, const std::string& more = "",
                           const std::string& attrs = "") {
  return R"({ParamOut: ["b1"], MasterParamOut: ["m1"]} = sgd(Param: ["b1"], Grad: [")" + gradient +
         R"("], LearningRate: ["rate"], MasterParam: ["m1"])" + more + ") {multi_precision = true" +
         attrs + "}";
}

// A cast of two bytes to float32 rounds nothing: the update does it, too.
TEST(FuseOptimizerPass, ReadsTwoByteGradientsAsTheyAre) {
  EXPECT_EQ(UpdateAfter(StrCat(kWidened, MasterUpdateBy("t4"))), MasterUpdateBy("bg1"));
  EXPECT_EQ(UpdateAfter(StrCat(kWidened, R"({Out: ["t3"]} = elementwise_mul(X: ["t4"], Y: ["n1"])
                                            {Out: ["t1"]} = scale(X: ["m1"]) {scale = 0.25}
                                            {Out: ["t2"]} = sum(X: ["t3", "t1"]))",
                               MasterUpdateBy("t2"))),
            MasterUpdateBy("bg1", R"(, GradScale: ["n1"])",
                           R"(, regularization_coeff = 0.25, regularization_method = "l2_decay")"));
}

TEST(FuseOptimizerPass, MakesOneNormOfTensorsOfDifferentDtypes) {
  const std::vector<std::string> ops =
      OpsAfter(FuseOptimizerPass(), StrCat(kWidened, R"({Out: ["n1"]} = squared_l2_norm(X: ["t4"])
                                                        {Out: ["n2"]} = squared_l2_norm(X: ["g2"])
                                                        {Out: ["n3"]} = sum(X: ["n1", "n2"]))"));
  EXPECT_EQ(ops.back(), R"({Out: ["n3"]} = squared_global_norm(X: ["bg1", "g2"]))");
}

// Other casts round; a gradient that changes after the cast is another value; decay of the rounded
// parameter is another formula.
TEST(FuseOptimizerPass, KeepsCastsThatAreNotExact) {
  ExpectLeft(R"({Out: ["bg1"]} = cast(X: ["t4"]) {in_dtype = 5, out_dtype = 22})" +
             MasterUpdateBy("bg1"));
  ExpectLeft(StrCat(kWidened, R"({Out: ["bg1"]} = assign(X: ["bg2"]))", MasterUpdateBy("t4")));
  ExpectLeft(R"({Out: ["t3"]} = cast(X: ["b1"]) {in_dtype = 22, out_dtype = 5}
                {Out: ["t1"]} = scale(X: ["t3"]) {scale = 0.25}
                {Out: ["t2"]} = sum(X: ["g1", "t1"]))" +
             MasterUpdateBy("t2"));
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
  EXPECT_THAT(report.summary, HasSubstr("1 decays, 0 scales, 0 powers and 0 casts of gradients "
                                        "folded into updates"));
}

}  // namespace
}  // namespace skiff
