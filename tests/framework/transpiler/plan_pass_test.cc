// The plan passes on lowered programs of tiny ops: what they change, and that values stay the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/plan/plan.h"
#include "framework/tensor/layout_copy.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

const PlanValue* FindValue(const Plan& plan, std::string_view name) {
  const auto it = std::ranges::find(plan.values, name, &PlanValue::name);
  return it == plan.values.end() ? nullptr : &*it;
}

// image -> conv (channel-blocked rule) -> relu (same layout) -> flat (plain), as stand-ins.
void RegisterLayoutOps(OpRegistry& registry) {
  const auto add = [&](const std::string& type, LayoutRule rule, bool zero_preserving) {
    OpDef def = registry.Get("tiny_copy");
    def.type = type;
    def.layout_rule = rule;
    def.layout_slots = {"X", "Out"};
    def.zero_preserving = zero_preserving;
    registry.Add(def);
    registry.AddKernel(type, {.prepare =
                                  [](PrepareContext&) {
                                    return MakeKernel([](const KernelContext& kernel) {
                                      CopyBetweenLayouts(kernel.input(0), &kernel.output(0));
                                    });
                                  },
                              .accepts =
                                  [rule](const OpContext& context) {
                                    return rule != LayoutRule::kPlain || AllPlain(context);
                                  }});
  };
  add("tiny_conv", LayoutRule::kChannelBlocked, false);
  add("tiny_relu", LayoutRule::kSame, true);
  add("tiny_exp", LayoutRule::kSame, false);
  add("tiny_flat", LayoutRule::kPlain, false);
}

// tiny_view: Out is X.
void RegisterView(OpRegistry& registry) {
  OpDef view = registry.Get("tiny_copy");
  view.type = "tiny_view";
  view.in_place = {{"X", "Out"}};
  view.views = view.in_place;
  view.elementwise = false;
  registry.Add(view);
  registry.AddKernel("tiny_view", registry.Kernels("tiny_copy")[0]);
}

class PlanPassTest : public ::testing::Test {
 protected:
  PlanPassTest() {
    tiny::RegisterTinyOps(registry_);
    RegisterLayoutOps(registry_);
    RegisterView(registry_);
    executor_ = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
  }

  BoundProgram Bind(const std::string& ops, const Shape& shape, const FetchList& fetches,
                    const CompileOptions& options = {}) {
    std::string vars;
    for (const char* name : {"x", "a", "b", "c", "d"}) {
      vars += std::string("var ") + name + " float32 [-1, -1, -1, -1]\n";
    }
    x_ = Tensor(shape, DType::kFloat32);
    for (int64_t i = 0; i < x_.element_count(); ++i) x_.data<float>()[i] = static_cast<float>(i);
    auto compiled =
        executor_->Compile(*ParseProgramText("program { block 0 {" + vars + ops + "} }"), options);
    return compiled.Bind({{"x", x_}}, fetches);
  }

  OpRegistry registry_;
  std::unique_ptr<Executor> executor_;
  Tensor x_;
};

constexpr const char* kImageNet = R"(
  {Out: [a]} = tiny_conv(X: [x])
  {Out: [b]} = tiny_relu(X: [a])
  {Out: [c]} = tiny_conv(X: [b])
  {Out: [d]} = tiny_flat(X: [c]))";

TEST_F(PlanPassTest, LayoutKeepsActivationsBlockedBetweenNeighbours) {
  if (PreferredChannelBlock() == 1) GTEST_SKIP() << "this processor has no blocked layouts";
  BoundProgram bound = Bind(kImageNet, {2, 16, 3, 3}, {"d"});
  for (const char* name : {"a", "b"}) {
    EXPECT_FALSE(FindValue(bound.plan(), name)->meta.layout.is_plain()) << name;
  }
  EXPECT_TRUE(FindValue(bound.plan(), "d")->meta.layout.is_plain());
  // x goes in and c comes out: nothing is converted in between.
  EXPECT_EQ(bound.statistics().layout_copies, 2);
  bound.Step();
  EXPECT_EQ(bound.fetch(0).ToVector<float>(), x_.ToVector<float>());
}

TEST_F(PlanPassTest, LayoutLeavesFewChannelsPlain) {
  EXPECT_EQ(Bind(kImageNet, {2, 3, 4, 4}, {"d"}).statistics().layout_copies, 0);
}

TEST_F(PlanPassTest, LayoutLeavesAnOpPlainWhoseForcedKernelTakesNoBlocks) {
  for (const char* type : {"tiny_conv", "tiny_relu"}) {
    KernelDef only_plain = registry_.Kernels(type)[0];
    only_plain.name = "only_plain";
    only_plain.accepts = AllPlain;
    registry_.AddKernel(type, only_plain);
  }
  const BoundProgram bound =
      Bind(kImageNet, {2, 16, 3, 3}, {"d"}, {.kernels = {{"tiny_conv", "only_plain"}}});
  EXPECT_EQ(bound.statistics().layout_copies, 0);
  // A kernel that can't be had at all changes nothing.
  registry_.AddKernel("tiny_conv", {.name = "never",
                                    .prepare = registry_.Kernels("tiny_conv")[0].prepare,
                                    .accepts = [](const OpContext&) { return false; }});
  if (PreferredChannelBlock() == 1) return;
  EXPECT_EQ(Bind(kImageNet, {2, 16, 3, 3}, {"d"}, {.kernels = {{"tiny_conv", "never"}}})
                .statistics()
                .layout_copies,
            2);
}

TEST_F(PlanPassTest, LayoutGivesPlainFetchesOfBlockedValues) {
  BoundProgram bound = Bind(kImageNet, {2, 17, 3, 3}, {"a", "b", "d"});
  bound.Step();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(bound.fetch(i).layout().is_plain());
    EXPECT_EQ(bound.fetch(i).ToVector<float>(), x_.ToVector<float>()) << i;
  }
}

TEST_F(PlanPassTest, LayoutKeepsPaddingAwayFromOpsThatDoNotPreserveZeros) {
  BoundProgram bound = Bind(R"(
    {Out: [a]} = tiny_conv(X: [x])
    {Out: [b]} = tiny_exp(X: [a]))",
                            {2, 17, 3, 3}, {"b"});
  EXPECT_TRUE(FindValue(bound.plan(), "b")->meta.layout.is_plain());
}

TEST_F(PlanPassTest, MemoryReuseComputesInPlaceWhereTheInputDies) {
  constexpr const char* kChain = R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_scale(X: [a])
    {Out: [c]} = tiny_scale(X: [b]))";
  const BoundProgram bound = Bind(kChain, {1, 1, 1, 8}, {"c"});
  EXPECT_TRUE(FindValue(bound.plan(), "c")->alias_of);
  EXPECT_EQ(bound.statistics().planned_bytes, 32);
  // A fetched value is never the place of another.
  const BoundProgram fetched = Bind(kChain, {1, 1, 1, 8}, {"b", "c"});
  EXPECT_FALSE(FindValue(fetched.plan(), "c")->alias_of);
}

TEST_F(PlanPassTest, MemoryReuseLeavesAnInputThatIsReadAgain) {
  BoundProgram bound = Bind(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_scale(X: [a]) {factor = 2.0}
    {Out: [c]} = tiny_add(X: [b], Y: [a])
    {Out: [d]} = tiny_add(X: [c], Y: [c]))",
                            {1, 1, 1, 4}, {"d"});
  EXPECT_FALSE(FindValue(bound.plan(), "b")->alias_of);
  // Both operands of the last op are one value: its kernel may not write over it.
  EXPECT_FALSE(FindValue(bound.plan(), "d")->alias_of);
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(0, 6, 12, 18));
}

TEST_F(PlanPassTest, MemoryReuseLetsAViewLieOnAnInputThatIsReadAgain) {
  BoundProgram bound = Bind(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_view(X: [a])
    {Out: [c]} = tiny_add(X: [b], Y: [a]))",
                            {1, 1, 1, 4}, {"a", "c"});
  EXPECT_TRUE(FindValue(bound.plan(), "b")->alias_of);
  // Both operands are one storage, and it is fetched.
  EXPECT_FALSE(FindValue(bound.plan(), "c")->alias_of);
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(bound.fetch(1).ToVector<float>(), ElementsAre(0, 2, 4, 6));
}

// The view is read after the last reader of the value that it shows.
TEST_F(PlanPassTest, MemoryReuseWritesOverNothingThatAViewStillShows) {
  CompileOptions options;
  options.passes.skip = {"fuse_elementwise"};
  BoundProgram bound = Bind(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_view(X: [a])
    {Out: [c]} = tiny_scale(X: [a]) {factor = 2.0}
    {Out: [d]} = tiny_add(X: [c], Y: [b]))",
                            {1, 1, 1, 4}, {"d"}, options);
  EXPECT_TRUE(FindValue(bound.plan(), "b")->alias_of);
  EXPECT_FALSE(FindValue(bound.plan(), "c")->alias_of);
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(0, 3, 6, 9));
}

TEST_F(PlanPassTest, DeadCodeDropsTheBranchNobodyFetches) {
  constexpr const char* kBranches = R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_scale(X: [a])
    {Out: [c]} = tiny_scale(X: [a]) {factor = 2.0})";
  EXPECT_EQ(Bind(kBranches, {1, 1, 1, 4}, {"b"}).statistics().instructions, 2);
  EXPECT_EQ(Bind(kBranches, {1, 1, 1, 4}, {"b", "c"}).statistics().instructions, 3);
}

TEST_F(PlanPassTest, PassesCanBeSkippedAndLimited) {
  CompileOptions options;
  options.passes.skip = {"dead_code"};
  EXPECT_EQ(Bind(kImageNet, {1, 3, 2, 2}, {"a"}, options).statistics().instructions, 4);
  std::vector<std::string> ran;
  options.passes = {.pass_limit = 1};
  options.passes.program_observer = [&](const PassReport& report, const Program& program) {
    ran.push_back(StrCat(report.pass, " ", program.root()->ops().size()));
  };
  options.passes.plan_observer = [&](const PassReport& report, const Plan& plan) {
    ran.push_back(StrCat(report.pass, " ", plan.instructions.size()));
  };
  Bind(kImageNet, {1, 3, 2, 2}, {"a"}, options);
  EXPECT_THAT(ran, ElementsAre("early_update 4", "dead_code 1"));
  options.passes.skip = {"no_such_pass"};
  EXPECT_THROW(Bind(kImageNet, {1, 3, 2, 2}, {"a"}, options), Error);
}

}  // namespace
}  // namespace skiff
