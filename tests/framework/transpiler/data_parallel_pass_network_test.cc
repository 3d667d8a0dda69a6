// Programs that data_parallel refuses, and its counts; rewrites/data_parallel.txt has the rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/comm/threads_communicator.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "framework/transpiler/data_parallel_pass.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Of a root block with the parameter w, its gradient g, statistics, the feed x, and ops.
std::unique_ptr<Program> ProgramOf(const std::string& ops) {
  return ParseProgramText(StrCat(R"(program { block 0 {
    param w float32 [4] persistable
    var g float32 [4]
    var x float32 [-1, 4]
    var y float32 [-1, 4]
    var mean float32 [4] persistable
    var variance float32 [4] persistable
    var momentum float32 [1] persistable
    var saved_mean float32 [4]
    var saved_variance float32 [4]
    var rate float32 [1] persistable
    var more bool [1] persistable
    var scopes step_scopes float32 []
    )",
                                 ops, " } }"));
}

PassReport Apply(Program* program) {
  return DataParallelPass().Apply({DefaultOpRegistry(), {.communicator = MakeThreadRanks(2)[0]}},
                                  program);
}

std::string Refusal(const std::string& ops) {
  const std::unique_ptr<Program> program = ProgramOf(ops);
  return ErrorText(ErrorCode::kUnimplemented, [&] { Apply(program.get()); });
}

constexpr const char* kGradient =
    R"({Out: [g]} = reduce_sum(X: [x]) {dim = ints [0], op_role = 1,
                                        op_role_var = strings ["w", "g"]})";
constexpr const char* kUpdate =
    "{ParamOut: [w]} = sgd(Param: [w], Grad: [g], LearningRate: [rate]) {op_role = 2}";

std::string BatchNorm(const std::string& more_inputs = "") {
  return StrCat(R"({Y: [y], MeanOut: [mean], VarianceOut: [variance], SavedMean: [saved_mean],
                    SavedVariance: [saved_variance]} =
                   batch_norm(X: [x], Scale: [w], Bias: [w], Mean: [mean], Variance: [variance])",
                more_inputs, ")");
}

TEST(DataParallelPass, CountsGradientsAndStatistics) {
  const auto program = ProgramOf(StrCat(BatchNorm(), kGradient, kUpdate));
  const PassReport report = Apply(program.get());
  EXPECT_EQ(report.changes, 1);
  EXPECT_EQ(report.summary, "1 gradients summed over the ranks, 2 running statistics shared");
}

TEST(DataParallelPass, LeavesGradientsAloneThatFleetHasSummed) {
  const auto program =
      ProgramOf(StrCat(kGradient, "{Out: [g]} = c_allreduce_sum(X: [g]) {op_role = 1}", kUpdate));
  const auto before = program->Clone();
  EXPECT_EQ(Apply(program.get()).changes, 0);
  EXPECT_TRUE(*program == *before);
}

TEST(DataParallelPass, RefusesAnUpdateWithoutAMarkedGradient) {
  EXPECT_THAT(
      Refusal(StrCat("{Out: [g]} = reduce_sum(X: [x]) {dim = ints [0], op_role = 1}", kUpdate)),
      HasSubstr("the update sgd of parameter \"w\": no op_role_var names the gradient"));
}

TEST(DataParallelPass, RefusesAGradientThatOnlyAnOptimizerOpWrites) {
  EXPECT_THAT(Refusal(R"({Out: [g]} = scale(X: [w]) {op_role = 2}
                         {ParamOut: [w]} = sgd(Param: [w], Grad: [g], LearningRate: [rate])
                         {op_role = 2, op_role_var = strings ["w", "g"]})"),
              HasSubstr("the gradient \"g\", which is to be summed over ranks, is written by no op "
                        "that isn't an optimizer's"));
}

TEST(DataParallelPass, RefusesAnUpdateThatIsNotMarkedAsOne) {
  EXPECT_THAT(Refusal(StrCat(kGradient,
                             "{ParamOut: [w]} = sgd(Param: [w], Grad: [g], LearningRate: [rate])")),
              AllOf(HasSubstr("sgd (block 0, op #1)"),
                    HasSubstr("updates parameters with op_role 0, expected op_role 2")));
}

TEST(DataParallelPass, RefusesAnUpdateInABlockOfAnotherOp) {
  const auto program = ProgramOf(StrCat(kGradient, R"(
        {Scope: [scopes]} = conditional_block(Cond: [more], Input: [w, g, rate]) {
            is_scalar_condition = true, sub_block = block 1, op_role = 2} }
      block 1 parent=0 { )",
                                        kUpdate));
  EXPECT_THAT(ErrorText(ErrorCode::kUnimplemented, [&] { Apply(program.get()); }),
              AllOf(HasSubstr("sgd (block 1, op #0)"),
                    HasSubstr("updates parameters in a block of another op, expected updates in "
                              "block 0")));
}

// The branch still has the gradient of the rank.
TEST(DataParallelPass, RefusesABranchThatChangesTheGradient) {
  const auto program = ProgramOf(StrCat(kGradient, R"(
        {Out: [g], Scope: [scopes]} = conditional_block(Cond: [more], Input: [g]) {
            is_scalar_condition = true, sub_block = block 1, op_role = 2} )",
                                        kUpdate, R"( }
      block 1 parent=0 { {Out: [g]} = clip(X: [g]) {min = -1.0, max = 1.0, op_role = 2} )"));
  EXPECT_THAT(ErrorText(ErrorCode::kUnimplemented, [&] { Apply(program.get()); }),
              HasSubstr("\"w\" would differ between ranks"));
}

TEST(DataParallelPass, RefusesAGradientOfWhichARankHasAPart) {
  EXPECT_THAT(
      Refusal(StrCat(kGradient, "{Out: [g]} = c_reducescatter(X: [x]) {nranks = 2, op_role = 1}",
                     kUpdate)),
      AllOf(HasSubstr("c_reducescatter (block 0, op #1)"),
            HasSubstr("the gradient \"g\" is one rank's part of a sum, expected whole gradients")));
}

TEST(DataParallelPass, RefusesStatisticsOfTwoOps) {
  EXPECT_THAT(Refusal(StrCat(BatchNorm(), BatchNorm(), kGradient, kUpdate)),
              AllOf(HasSubstr("batch_norm (block 0, op #0)"),
                    HasSubstr("another op updates \"mean\", too")));
}

// Nothing keeps them from run to run.
TEST(DataParallelPass, LeavesStatisticsAloneThatAreNotInPlace) {
  std::string norm = BatchNorm();
  norm.replace(norm.find("MeanOut: [mean]"), 15, "MeanOut: [y]");
  const auto program = ProgramOf(StrCat(norm, kGradient, kUpdate));
  EXPECT_THAT(ErrorText(ErrorCode::kUnimplemented, [&] { Apply(program.get()); }),
              HasSubstr("\"variance\" would differ between ranks"));
}

TEST(DataParallelPass, RefusesAMomentumThatIsATensor) {
  EXPECT_THAT(Refusal(StrCat(BatchNorm(", MomentumTensor: [momentum]"), kGradient, kUpdate)),
              HasSubstr("MomentumTensor of statistics that several ranks share"));
}

TEST(DataParallelPass, RefusesAPersistableOfTheRank) {
  EXPECT_THAT(Refusal(StrCat(kGradient, kUpdate, "{Out: [momentum]} = mean(X: [x])")),
              AllOf(HasSubstr("mean (block 0, op #3)"),
                    HasSubstr("\"momentum\" would differ between ranks")));
}

}  // namespace
}  // namespace skiff
