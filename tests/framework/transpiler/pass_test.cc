// The registry of passes and the pipelines.
#include "framework/transpiler/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class OwnProgramPass final : public ProgramPass {
 public:
  std::string_view name() const override { return "own"; }
  PassReport Apply(const ProgramPassContext&, Program* program) const override {
    program->root()->RemoveOps(0, 1);
    return {.pass = {}, .changes = 1, .summary = "the first op removed"};
  }
};

class OwnPlanPass final : public PlanPass {
 public:
  std::string_view name() const override { return "own"; }
  PassReport Apply(const PassContext&, Plan* plan) const override {
    plan->reuse = plan->reuse == ReusePolicy::kNone ? ReusePolicy::kArena : ReusePolicy::kNone;
    return {};
  }
};

std::vector<std::string> ProgramPassesRun(const PipelineOptions& options,
                                          PlaceKind place = PlaceKind::kCpu) {
  const OpRegistry registry;
  const auto program = ParseProgramText(
      "program { block 0 {var x float32 [1] var y float32 [1] {Out: [y]} = tiny_copy(X: [x])} }");
  std::vector<std::string> ran;
  for (const PassReport& report : RunProgramPasses(registry, place, program.get(), options)) {
    ran.push_back(report.pass);
  }
  return ran;
}

std::vector<std::string> PlanPassesRun(const PipelineOptions& options) {
  const OpRegistry registry;
  Plan plan;
  std::vector<std::string> ran;
  for (const PassReport& report : RunPlanPasses({.registry = registry}, &plan, options)) {
    ran.push_back(report.pass);
  }
  return ran;
}

TEST(Passes, BearTheNameOfTheirFile) {
  for (const std::string& name : ProgramPassNames()) {
    EXPECT_EQ(MakeProgramPass(name)->name(), name);
  }
  for (const std::string& name : PlanPassNames()) EXPECT_EQ(MakePlanPass(name)->name(), name);
  EXPECT_THROW(MakeProgramPass("no_such_pass"), Error);
  EXPECT_THROW(MakePlanPass("no_such_pass"), Error);
}

TEST(Passes, StateHowFarTheyMoveAResult) {
  EXPECT_EQ(MakePlanPass("memory_reuse")->tolerance(), 0);
  EXPECT_GT(MakePlanPass("layout")->tolerance(), 0);
}

TEST(Pipeline, RunsTheDefaultsInOrder) {
  EXPECT_THAT(ProgramPassesRun({}), ElementsAreArray(DefaultProgramPasses(PlaceKind::kCpu)));
  EXPECT_THAT(PlanPassesRun({}), ElementsAreArray(DefaultPlanPasses()));
}

TEST(Pipeline, FusesUpdatesByDefaultOnADeviceOnly) {
  EXPECT_THAT(ProgramPassesRun({}), ElementsAre("early_update"));
  EXPECT_THAT(ProgramPassesRun({}, PlaceKind::kCuda),
              ElementsAre("fuse_optimizer", "merge_optimizer", "early_update"));
  EXPECT_THAT(ProgramPassesRun({.skip = {"fuse_optimizer"}}, PlaceKind::kCuda),
              ElementsAre("early_update"));
  EXPECT_THAT(ProgramPassesRun({.skip = DefaultProgramPasses(PlaceKind::kCuda)}, PlaceKind::kCuda),
              ElementsAre());
}

TEST(Pipeline, RunsNoPassTwice) {
  EXPECT_THAT(PlanPassesRun({.also = {"dead_code"}}), ElementsAreArray(DefaultPlanPasses()));
}

TEST(Pipeline, SkipsWhatIsAskedForAsWell) {
  EXPECT_THAT(PlanPassesRun({.skip = {"dead_code"}, .also = {"dead_code"}}),
              ::testing::Not(Contains("dead_code")));
}

TEST(Pipeline, RunsWhatAPassNeeds) {
  const std::vector<std::string> ran = ProgramPassesRun({.also = {"flatten_parameters"}});
  const auto needed = std::ranges::find(ran, "merge_optimizer");
  ASSERT_NE(needed, ran.end());
  EXPECT_EQ(needed[1], "flatten_parameters");
  // What it needs needs another one.
  EXPECT_THAT(ProgramPassesRun({.also = {"shard_optimizer"}}),
              IsSupersetOf({"merge_optimizer", "flatten_parameters", "shard_optimizer"}));
  EXPECT_THAT(ProgramPassesRun({.skip = {"merge_optimizer"}, .also = {"flatten_parameters"}}),
              ::testing::AllOf(Contains("flatten_parameters"),
                               ::testing::Not(Contains("merge_optimizer"))));
  EXPECT_THAT(ProgramPassesRun({.skip = {"flatten_parameters"}, .also = {"flatten_parameters"}}),
              ElementsAreArray(DefaultProgramPasses(PlaceKind::kCpu)));
}

TEST(Pipeline, RefusesUnknownNames) {
  const auto message = [](const PipelineOptions& options) {
    return ErrorText([&] { PlanPassesRun(options); });
  };
  EXPECT_THAT(message({.skip = {"dead_cod"}}), HasSubstr("no pass \"dead_cod\" to skip"));
  EXPECT_THAT(message({.also = {"dead_cod"}}),
              HasSubstr("no pass \"dead_cod\" to run as well; there are: sync_batch_norm, "
                        "data_parallel, bucket_gradients, fuse_optimizer"));
}

TEST(Pipeline, IsChangedByATextOfNames) {
  const PipelineOptions options = ParsePasses("+fuse_optimizer,-layout,-order");
  EXPECT_THAT(options.also, ElementsAre("fuse_optimizer"));
  EXPECT_THAT(options.skip, ElementsAre("layout", "order"));
  EXPECT_TRUE(ParsePasses("").skip.empty());
  EXPECT_TRUE(ParsePasses("").also.empty());
  EXPECT_THAT(ProgramPassesRun(ParsePasses("none")), ElementsAre());
  EXPECT_THAT(PlanPassesRun(ParsePasses("none")), ElementsAre());
  // What an optimizer pass needs runs as well.
  EXPECT_THAT(ProgramPassesRun(options), Contains("merge_optimizer"));
  for (const char* text : {"layout", "+order,layout", "-order,,-layout"}) {
    EXPECT_THAT(InvalidArgumentText([&] { ParsePasses(text); }),
                HasSubstr("expected a + (to run it as well) or a -"));
  }
}

TEST(Pipeline, RunsTheCallersOwnPassesLast) {
  PipelineOptions options;
  options.program_passes = {std::make_shared<OwnProgramPass>()};
  options.plan_passes = {std::make_shared<OwnPlanPass>()};
  std::vector<std::string> expected = DefaultProgramPasses(PlaceKind::kCpu);
  expected.push_back("own");
  EXPECT_THAT(ProgramPassesRun(options), ElementsAreArray(expected));
  expected = DefaultPlanPasses();
  expected.push_back("own");
  EXPECT_THAT(PlanPassesRun(options), ElementsAreArray(expected));
  // The limit that bisection uses counts them, too.
  options.pass_limit = static_cast<int32_t>(DefaultPlanPasses().size());
  EXPECT_THAT(PlanPassesRun(options), ElementsAreArray(DefaultPlanPasses()));
}

TEST(Pipeline, AppliesTheCallersOwnPasses) {
  const OpRegistry registry;
  const auto program = ParseProgramText(
      "program { block 0 {var x float32 [1] var y float32 [1] {Out: [y]} = tiny_copy(X: [x])} }");
  PipelineOptions options;
  options.program_passes = {std::make_shared<OwnProgramPass>()};
  const std::vector<PassReport> reports =
      RunProgramPasses(registry, PlaceKind::kCpu, program.get(), options);
  EXPECT_TRUE(program->root()->ops().empty());
  EXPECT_EQ(reports.back().summary, "the first op removed");
}

}  // namespace
}  // namespace skiff
