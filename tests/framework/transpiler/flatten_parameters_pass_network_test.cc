#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/transpiler/flatten_parameters_pass.h"
#include "tests/framework/transpiler/optimizer_program.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(FlattenParametersPass, MarksUpdatesOfSeveralParameters) {
  const std::string ops = R"(
      {ParamOut: ["w1", "w2"]} = sgd(Param: ["w1", "w2"], Grad: ["g1", "g2"],
                                     LearningRate: ["rate"])
      {ParamOut: ["w3"]} = sgd(Param: ["w3"], Grad: ["g3"], LearningRate: ["rate"])
      {Out: ["t1"]} = scale(X: ["w1"]))";
  EXPECT_THAT(OpsAfter(FlattenParametersPass(), ops),
              ElementsAre(HasSubstr("is_flat = true"), Not(HasSubstr("is_flat")),
                          Not(HasSubstr("is_flat"))));
  const PassReport report = ReportOf(FlattenParametersPass(), ops);
  EXPECT_EQ(report.changes, 2);
  EXPECT_EQ(report.summary, "2 parameters stored flat, in 1 updates; alone in their updates: w3");
}

TEST(FlattenParametersPass, MarksSumsOfGradientsAndOfParametersToo) {
  const std::string ops = R"(
      {AccumulatedOut: ["v1", "v2"]} = gradient_merge(Accumulated: ["v1", "v2"],
                                                      Grad: ["g1", "g2"], Reset: ["b"]))";
  EXPECT_THAT(OpsAfter(FlattenParametersPass(), ops), ElementsAre(HasSubstr("is_flat = true")));
  const PassReport report = ReportOf(FlattenParametersPass(), ops);
  EXPECT_EQ(report.changes, 0);
  EXPECT_EQ(report.summary, "0 parameters stored flat, in 0 updates; sums in 1 ops");
}

}  // namespace
}  // namespace skiff
