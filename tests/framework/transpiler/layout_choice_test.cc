// Which ops run blocked, on lowered programs of tiny ops.
#include "framework/transpiler/layout_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/tensor/layout_copy.h"
#include "framework/transpiler/pass.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LayoutChoiceTest : public ::testing::Test {
 protected:
  LayoutChoiceTest() {
    tiny::RegisterTinyOps(registry_);
    AddCopying("conv", LayoutRule::kChannelBlocked);
    AddCopying("follower", LayoutRule::kSame);
    AddCopying("flat", LayoutRule::kPlain);
    executor_ = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
  }

  // Two kernels: "any", and "plain_only" of a lower priority for plain tensors.
  void AddCopying(const std::string& type, LayoutRule rule) {
    OpDef def = registry_.Get("tiny_copy");
    def.type = type;
    def.layout_rule = rule;
    def.layout_slots = {"X", "Out"};
    def.zero_preserving = true;
    registry_.Add(def);
    const auto prepare = [](PrepareContext&) {
      return MakeKernel(
          [](const KernelContext& run) { CopyBetweenLayouts(run.input(0), &run.output(0)); });
    };
    registry_.AddKernel(type, {.name = "any",
                               .prepare = prepare,
                               .accepts =
                                   [rule](const OpContext& context) {
                                     return rule != LayoutRule::kPlain || AllPlain(context);
                                   },
                               .priority = 1});
    registry_.AddKernel(type, {.name = "plain_only", .prepare = prepare, .accepts = AllPlain});
  }

  // The ops that run blocked, by their outputs. Each reads one variable, from "x" on:
  // {{"conv", "x", "a"}, ...}.
  std::set<std::string> Blocked(const std::vector<std::array<std::string, 3>>& ops,
                                const std::string& fetch, int64_t channels = 16,
                                const std::map<std::string, std::string>& forced = {}) {
    std::string text = "program { block 0 { var \"x\" float32 [-1, -1, -1, -1]\n";
    for (const auto& [type, in, out] : ops) {
      text += "var \"" + out + "\" float32 [-1, -1, -1, -1]\n";
    }
    for (const auto& [type, in, out] : ops) {
      text += "{Out: [\"" + out + "\"]} = " + type + "(X: [\"" + in + "\"])\n";
    }
    CompileOptions options;
    options.kernels = forced;
    options.passes.skip = PlanPassNames();
    const Tensor x = Tensor::FromValues<float>(
        {1, channels, 1, 1}, std::vector<float>(static_cast<size_t>(channels), 1));
    CompiledProgram compiled = executor_->Compile(*ParseProgramText(text + "} }"), options);
    const BoundProgram bound = compiled.Bind({{"x", x}}, {fetch});
    const Plan& plan = bound.plan();
    const PassContext context = {.registry = registry_, .forced_kernels = forced};
    const std::vector<bool> is_blocked =
        ChooseBlocked(plan, FindBlockedForms(context, plan, Layout::Blocked(8)));
    std::set<std::string> blocked;
    for (size_t i = 0; i < plan.instructions.size(); ++i) {
      if (is_blocked[i]) blocked.insert(plan[plan.instructions[i].outputs[0]].name);
    }
    return blocked;
  }

  OpRegistry registry_;
  std::unique_ptr<Executor> executor_;
};

TEST_F(LayoutChoiceTest, OpsWithoutAPreferenceFollowWhatComesBlocked) {
  EXPECT_THAT(Blocked({{"follower", "x", "a"},
                       {"conv", "a", "b"},
                       {"follower", "b", "c"},
                       {"flat", "c", "d"},
                       {"follower", "d", "e"}},
                      "e"),
              ElementsAre("b", "c"));
}

TEST_F(LayoutChoiceTest, TensorsWithFewerChannelsThanABlockStayPlain) {
  EXPECT_THAT(Blocked({{"conv", "x", "a"}}, "a", 7), IsEmpty());
  EXPECT_THAT(Blocked({{"conv", "x", "a"}}, "a", 9), ElementsAre("a"));
}

TEST_F(LayoutChoiceTest, AnOpStaysPlainWhereItsForcedKernelTakesPlainTensorsOnly) {
  EXPECT_THAT(Blocked({{"conv", "x", "a"}}, "a", 16, {{"conv", "plain_only"}}), IsEmpty());
  EXPECT_THAT(Blocked({{"conv", "x", "a"}}, "a", 16, {{"conv", "any"}}), ElementsAre("a"));
}

}  // namespace
}  // namespace skiff
