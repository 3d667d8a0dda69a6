// Layouts by times that the tests make up, on lowered programs of tiny ops.
#include "framework/transpiler/layout_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/tensor/layout_copy.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Layout kBlocked = Layout::Blocked(8);

class LayoutChoiceTest : public ::testing::Test {
 protected:
  using Names = std::set<std::string>;
  struct Seconds {
    double plain = 0;
    double blocked = 0;
  };

  LayoutChoiceTest() {
    tiny::RegisterTinyOps(registry_);
    for (const char* type : {"conv_a", "conv_b", "conv_c"}) {
      AddCopying(type, LayoutRule::kChannelBlocked);
    }
    AddCopying("follower", LayoutRule::kSame);
    AddCopying("flat", LayoutRule::kPlain);
    executor_ = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
  }

  std::shared_ptr<KernelTuner> MakeTuner() {
    return std::make_shared<KernelTuner>(
        registry_,
        KernelTunerOptions{
            .log = [this](const std::string& line) { logged_.push_back(line); },
            .timer =
                [this](const TuningRequest& request, const std::vector<const KernelDef*>& all) {
                  const OpContext& op = request.context;
                  const Seconds seconds = seconds_[op.op().type];
                  const bool is_plain = op.outputs()[0].layout.is_plain();
                  return std::vector<double>(all.size(),
                                             is_plain ? seconds.plain : seconds.blocked);
                },
            .copy_timer =
                [this](const TensorMeta& from, Layout) {
                  return from.layout.is_plain() ? to_blocked_ : to_plain_;
                }});
  }

  void AddCopying(const std::string& type, LayoutRule rule) {
    OpDef def = registry_.Get("tiny_copy");
    def.type = type;
    def.layout_rule = rule;
    def.layout_slots = {"X", "Out"};
    def.zero_preserving = true;
    registry_.Add(def);
    registry_.AddKernel(type, {.prepare =
                                   [](PrepareContext&) {
                                     return MakeKernel([](const KernelContext& run) {
                                       CopyBetweenLayouts(run.input(0), &run.output(0));
                                     });
                                   },
                               .accepts =
                                   [rule](const OpContext& context) {
                                     return rule != LayoutRule::kPlain || AllPlain(context);
                                   }});
  }

  // Of ops each reading one variable, from "x" on: {{"conv_a", "x", "a"}, …}.
  using Ops = std::vector<std::array<std::string, 3>>;
  BoundProgram Bind(const Ops& ops, const FetchList& fetches, const CompileOptions& options = {}) {
    std::string text = "program { block 0 { var \"x\" float32 [-1, -1, -1, -1]\n";
    for (const auto& [type, in, out] : ops) {
      text += "var \"" + out + "\" float32 [-1, -1, -1, -1]\n";
    }
    for (const auto& [type, in, out] : ops) {
      text += "{Out: [\"" + out + "\"]} = " + type + "(X: [\"" + in + "\"])\n";
    }
    auto compiled = executor_->Compile(*ParseProgramText(text + "} }"), options);
    return compiled.Bind({{"x", x_}}, fetches);
  }

  // The ops that LayoutsByTime lets run blocked, by their outputs.
  Names BlockedByTime(const Ops& ops, const FetchList& fetches,
                      std::map<std::string, std::string> forced = {}) {
    CompileOptions options;
    options.passes.skip = PlanPassNames();
    const BoundProgram bound = Bind(ops, fetches, options);
    Plan plan = bound.plan();
    const auto tuner = MakeTuner();
    plan.tuner = tuner.get();
    plan.forced_kernels.insert(forced.begin(), forced.end());
    const BlockedForms forms = FindBlockedForms(registry_, plan, kBlocked);
    const std::vector<bool> by_rule = LayoutsByRule(plan, forms);
    timed_ = LayoutsByTime(registry_, plan, forms, by_rule, kBlocked);
    Names blocked;
    by_rule_.clear();
    for (size_t i = 0; i < plan.instructions.size(); ++i) {
      const auto output = static_cast<size_t>(plan.instructions[i].outputs[0]);
      if (timed_.is_blocked[i]) blocked.insert(plan.values[output].name);
      if (by_rule[i]) by_rule_.insert(plan.values[output].name);
    }
    return blocked;
  }

  // What a choice costs, by the words of layout_choice.h.
  double CostOf(const Ops& ops, const FetchList& fetches, const Names& blocked,
                double plain_factor) {
    double cost = 0;
    for (const auto& [type, in, out] : ops) {
      if (!by_rule_.contains(out)) {
        if (blocked.contains(out)) return std::numeric_limits<double>::infinity();
        continue;
      }
      const Seconds seconds = seconds_[type];
      cost += blocked.contains(out) ? seconds.blocked : plain_factor * seconds.plain;
    }
    Names values = {"x"};
    for (const auto& op : ops) values.insert(op[2]);
    for (const std::string& value : values) {
      bool has_plain_reader = std::ranges::count(fetches, value) > 0;
      bool has_blocked_reader = false;
      for (const auto& [type, in, out] : ops) {
        if (in == value) (blocked.contains(out) ? has_blocked_reader : has_plain_reader) = true;
      }
      if (blocked.contains(value) && has_plain_reader) cost += to_plain_;
      if (!blocked.contains(value) && has_blocked_reader) cost += to_blocked_;
    }
    return cost;
  }

  OpRegistry registry_;
  std::unique_ptr<Executor> executor_;
  std::map<std::string, Seconds> seconds_;
  double to_plain_ = 1;
  double to_blocked_ = 1;
  std::vector<std::string> logged_;
  const Tensor x_ = Tensor::FromValues<float>({1, 16, 1, 1}, std::vector<float>(16, 1));
  // Of the last BlockedByTime.
  TimedLayouts timed_;
  Names by_rule_;
};

TEST_F(LayoutChoiceTest, WeighsWhatAChainGainsAgainstTheCopiesAtItsEnds) {
  const Ops chain = {{"conv_a", "x", "a"}, {"follower", "a", "b"}, {"conv_a", "b", "c"}};
  seconds_["conv_a"] = {.plain = 10, .blocked = 8.5};
  EXPECT_THAT(BlockedByTime(chain, {"c"}), ElementsAre("a", "b", "c"));
  EXPECT_EQ(timed_.seconds, 8.5 + 8.5 + 2);
  to_blocked_ = 4;
  EXPECT_THAT(BlockedByTime(chain, {"c"}), IsEmpty());
  EXPECT_EQ(timed_.seconds, 20);
  EXPECT_EQ(timed_.seconds_by_rule, 8.5 + 8.5 + 4 + 1);
}

TEST_F(LayoutChoiceTest, LeavesTheRuleForMoreThanNoiseOnly) {
  to_plain_ = to_blocked_ = 0;
  seconds_["conv_a"] = {.plain = 10, .blocked = 10.4};
  seconds_["conv_b"] = {.plain = 10, .blocked = 10.6};
  EXPECT_THAT(BlockedByTime({{"conv_a", "x", "a"}, {"conv_b", "a", "b"}}, {"b"}), ElementsAre("a"));
}

TEST_F(LayoutChoiceTest, CopiesOnceForAllThatReadAValue) {
  // Three blocked readers of a plain value and one plain one.
  const Ops ops = {{"conv_a", "x", "a"},
                   {"conv_b", "a", "b"},
                   {"conv_b", "a", "c"},
                   {"conv_b", "a", "d"},
                   {"flat", "a", "e"}};
  seconds_["conv_a"] = {.plain = 1, .blocked = 100};
  seconds_["conv_b"] = {.plain = 2, .blocked = 1};
  to_blocked_ = 2.5;
  to_plain_ = 0.1;
  EXPECT_THAT(BlockedByTime(ops, {"b", "c", "d", "e"}), ElementsAre("b", "c", "d"));
  EXPECT_NEAR(timed_.seconds, 1 + 2.5 + 3 * (1 + 0.1), 1e-9);
}

TEST_F(LayoutChoiceTest, TimesNothingThatTheRuleLeavesPlain) {
  seconds_["follower"] = {.plain = 10, .blocked = 1};
  to_plain_ = to_blocked_ = 0;
  EXPECT_THAT(BlockedByTime({{"follower", "x", "a"}, {"follower", "a", "b"}}, {"b"}), IsEmpty());
  EXPECT_THAT(logged_, IsEmpty());
}

// As an op over ragged rows, which makes up no data to be timed on.
TEST_F(LayoutChoiceTest, AnOpThatCannotBeTimedKeepsItsPreferenceAndWithoutOneGoesWithOthers) {
  OpDef random = registry_.Get("conv_a");
  random.type = "random_conv";
  random.random = true;
  registry_.Add(random);
  registry_.AddKernel("random_conv", registry_.Kernels("conv_a")[0]);
  OpDef follower = registry_.Get("follower");
  follower.type = "random_follower";
  follower.random = true;
  registry_.Add(follower);
  registry_.AddKernel("random_follower", registry_.Kernels("follower")[0]);
  seconds_["conv_a"] = {.plain = 1, .blocked = 9};
  EXPECT_THAT(BlockedByTime({{"random_conv", "x", "a"}, {"flat", "a", "b"}}, {"b"}),
              ElementsAre("a"));
  EXPECT_THAT(BlockedByTime({{"conv_a", "x", "a"}, {"random_follower", "a", "b"}}, {"b"}),
              IsEmpty());
}

TEST_F(LayoutChoiceTest, KeepsOpsWithAForcedKernelAsTheRuleHasThem) {
  seconds_["conv_a"] = {.plain = 1, .blocked = 100};
  const Ops ops = {{"conv_a", "x", "a"}, {"flat", "a", "b"}};
  EXPECT_THAT(BlockedByTime(ops, {"b"}), IsEmpty());
  EXPECT_THAT(BlockedByTime(ops, {"b"}, {{"conv_a", "plain"}}), ElementsAre("a"));
}

TEST_F(LayoutChoiceTest, IsTheBestOfAllChoices) {
  std::mt19937 random(1);
  const auto below = [&](size_t end) { return static_cast<size_t>(random() % end); };
  const std::vector<std::string> types = {"conv_a", "conv_b", "conv_c", "follower", "flat"};
  for (int round = 0; round < 200; ++round) {
    Ops ops;
    std::vector<std::string> values = {"x"};
    for (size_t i = 0; i < 8; ++i) {
      values.push_back("v" + std::to_string(i));
      ops.push_back({types[below(types.size())], values[below(values.size() - 1)], values.back()});
    }
    for (const std::string& type : types) {
      seconds_[type] = {static_cast<double>(1 + below(9)), static_cast<double>(1 + below(9))};
    }
    to_plain_ = 0.5 * static_cast<double>(below(8));
    to_blocked_ = 0.5 * static_cast<double>(below(8));
    // What nobody reads.
    FetchList fetches;
    for (const std::string& value : values) {
      const bool is_read = std::ranges::any_of(ops, [&](const auto& op) { return op[1] == value; });
      if (!is_read) fetches.push_back(value);
    }
    const Names blocked = BlockedByTime(ops, fetches);
    double least = std::numeric_limits<double>::infinity();
    for (unsigned bits = 0; bits < 1u << ops.size(); ++bits) {
      Names other;
      for (size_t i = 0; i < ops.size(); ++i) {
        if ((bits >> i & 1) != 0) other.insert(ops[i][2]);
      }
      least = std::min(least, CostOf(ops, fetches, other, KernelTuner::kNoiseFactor));
    }
    ASSERT_NEAR(CostOf(ops, fetches, blocked, KernelTuner::kNoiseFactor), least, 1e-6) << round;
    ASSERT_NEAR(CostOf(ops, fetches, blocked, 1), timed_.seconds, 1e-6) << round;
  }
}

TEST_F(LayoutChoiceTest, ThePassTakesTheChoiceAndSaysSo) {
  if (PreferredChannelBlock() == 1) GTEST_SKIP() << "this processor has no blocked layouts";
  seconds_["conv_a"] = {.plain = 1, .blocked = 2};
  seconds_["conv_b"] = {.plain = 9, .blocked = 1};
  const Ops ops = {{"conv_a", "x", "a"}, {"conv_b", "a", "b"}};
  BoundProgram bound = Bind(ops, {"b"}, {.tuner = MakeTuner()});
  EXPECT_EQ(bound.statistics().layout_copies, 2);
  EXPECT_THAT(logged_.back(),
              HasSubstr("layouts: 1 of 2 ops plain, as timed: 4000.000 ms, by rule 5000.000 ms"));
  bound.Step();
  EXPECT_EQ(bound.fetch(0).ToVector<float>(), x_.ToVector<float>());
}

}  // namespace
}  // namespace skiff
