#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/comm/threads_communicator.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "framework/op/update_part.h"
#include "framework/transpiler/shard_optimizer_pass.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Three parameters of 1,000, 30 and 970 elements, each with two moments.
std::string AdamProgram(const std::string& update_attrs = "") {
  std::string text = "program { block 0 {\n  var rate float32 [1] persistable\n";
  const auto add = [&](const std::string& name, const std::string& dims) {
    text += "  param " + name + " float32 [" + dims + "] persistable\n";
    text += "  var " + name + "_g float32 [" + dims + "]\n";
    for (const char* state : {"_m1", "_m2"}) {
      text += "  var " + name + state + " float32 [" + dims + "] persistable\n";
    }
    for (const char* power : {"_p1", "_p2"}) {
      text += "  var " + name + power + " float32 [1] persistable\n";
    }
  };
  add("a", "20, 50");
  add("b", "30");
  add("c", "970");
  const auto list = [](const std::string& suffix) {
    return "[a" + suffix + ", b" + suffix + ", c" + suffix + "]";
  };
  return text + "  {ParamOut: " + list("") + ", Moment1Out: " + list("_m1") +
         ", Moment2Out: " + list("_m2") + ", Beta1PowOut: " + list("_p1") +
         ", Beta2PowOut: " + list("_p2") + "} = merged_adam(Param: " + list("") +
         ", Grad: " + list("_g") + ", Moment1: " + list("_m1") + ", Moment2: " + list("_m2") +
         ", Beta1Pow: " + list("_p1") + ", Beta2Pow: " + list("_p2") +
         ", LearningRate: [rate]) {op_role = 2" + update_attrs + "}\n} }\n";
}

struct OnRank {
  std::unique_ptr<Program> program;
  PassReport report;
};

std::vector<OnRank> OnRanks(int32_t ranks, const std::string& text) {
  const auto communicators = MakeThreadRanks(ranks);
  std::vector<OnRank> all;
  for (const auto& communicator : communicators) {
    ProgramPassContext context(DefaultOpRegistry());
    context.data_parallel.communicator = communicator;
    OnRank& one = all.emplace_back(OnRank{.program = ParseProgramText(text), .report = {}});
    one.report = ShardOptimizerPass().Apply(context, one.program.get());
  }
  return all;
}

TEST(ShardOptimizerPass, GivesEachElementToOneRank) {
  for (int32_t ranks = 2; ranks <= 9; ++ranks) {
    int64_t end = 0;
    for (const OnRank& one : OnRanks(ranks, AdamProgram())) {
      const Op& update = *one.program->root()->ops()[0];
      const auto part = update.Attr<std::vector<int64_t>>(kPartAttr);
      EXPECT_EQ(part[0], end);
      end = part[1];
      // About a share of the elements, and gaps behind pieces.
      const Var& shard = *one.program->root()->GetVar(update.Input("Moment2")[0]);
      EXPECT_LE(shard.dims[0], 2000 / ranks + 4 * kPieceAlignment);
    }
    EXPECT_EQ(end, 2000);
  }
}

TEST(ShardOptimizerPass, GathersAlikeOnAllRanks) {
  const std::vector<OnRank> all = OnRanks(3, AdamProgram());
  for (const OnRank& one : all) {
    ASSERT_THAT(one.program->root()->ops(), SizeIs(2));
    const Op& gather = *one.program->root()->ops()[1];
    EXPECT_EQ(gather.type, "c_all_gather_list");
    EXPECT_EQ(gather, *all[0].program->root()->ops()[1]);
    EXPECT_THAT(gather.Output("Out"), ElementsAre("a", "b", "c"));
  }
}

TEST(ShardOptimizerPass, ReportsWhatARankKeeps) {
  const PassReport report = OnRanks(4, AdamProgram())[1].report;
  EXPECT_EQ(report.changes, 6);
  // 500 elements of `a`, of two moments.
  EXPECT_EQ(report.summary, "6 states in shards, 4096 of 16000 bytes; parts of 0 sums");
}

TEST(ShardOptimizerPass, LeavesUpdatesAloneThatHaveAPart) {
  const PassReport report = OnRanks(2, AdamProgram(", part = longs [0, 9]"))[0].report;
  EXPECT_EQ(report.changes, 0);
  EXPECT_THAT(report.summary, HasSubstr("left whole: a, b, c (has a part)"));
}

TEST(ShardOptimizerPass, DoesNothingForOneRank) {
  const OnRank one = std::move(OnRanks(1, AdamProgram())[0]);
  EXPECT_EQ(one.report.changes, 0);
  EXPECT_EQ(PrintProgram(*one.program), PrintProgram(*ParseProgramText(AdamProgram())));
}

}  // namespace
}  // namespace skiff
