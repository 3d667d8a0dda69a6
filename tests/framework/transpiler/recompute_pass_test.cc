#include "framework/transpiler/recompute_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/analysis/memory_report.h"
#include "framework/analysis/verify_plan.h"
#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// tiny_count: Out = X, and CountOut = Count + 1.
void RegisterCount(OpRegistry& registry) {
  OpDef count = registry.Get("tiny_add");
  count.type = "tiny_count";
  count.inputs = {{.name = "X", .doc = ""}, {.name = "Count", .doc = ""}};
  count.outputs = {{.name = "Out", .doc = ""}, {.name = "CountOut", .doc = ""}};
  count.in_place = {{"Count", "CountOut"}};
  count.running_state = count.in_place;
  count.elementwise = false;
  count.infer = [](OpContext& context) {
    context.SetOutputLike("Out", "X");
    context.SetOutputLike("CountOut", "Count");
  };
  registry.Add(count);
  registry.AddKernel("tiny_count", {.prepare = [](PrepareContext&) {
                       return MakeKernel([](const KernelContext& run) {
                         for (int64_t i = 0; i < run.input(0).element_count(); ++i) {
                           run.output(0).data<float>()[i] = run.input(0).data<float>()[i];
                         }
                         run.output(1).data<float>()[0] = run.input(1).data<float>()[0] + 1;
                       });
                     }});
}

// tiny_shift: Saved = 5, Out = X + Saved. tiny_shift_replay computes Out from X and Saved.
void RegisterShift(OpRegistry& registry) {
  OpDef replay = registry.Get("tiny_add");
  replay.type = "tiny_shift_replay";
  replay.inputs = {{.name = "X", .doc = ""}, {.name = "Saved", .doc = ""}};
  registry.Add(replay);
  registry.AddKernel("tiny_shift_replay", registry.Kernels("tiny_add")[0]);
  OpDef shift = registry.Get("tiny_copy");
  shift.type = "tiny_shift";
  shift.outputs.push_back({.name = "Saved", .doc = ""});
  shift.infer = [](OpContext& context) {
    context.SetOutputLike("Out", "X");
    context.SetOutputLike("Saved", "X");
  };
  shift.replayed_by = "tiny_shift_replay";
  registry.Add(shift);
  registry.AddKernel("tiny_shift", {.prepare = [](PrepareContext&) {
                       return MakeKernel([](const KernelContext& run) {
                         for (int64_t i = 0; i < run.input(0).element_count(); ++i) {
                           run.output(1).data<float>()[i] = 5;
                           run.output(0).data<float>()[i] = run.input(0).data<float>()[i] + 5;
                         }
                       });
                     }});
}

// tiny_product: a tiny_scale that takes `factor` FLOP. tiny_pass and tiny_join: tiny_scale and
// tiny_add, but they are never fused.
void RegisterProduct(OpRegistry& registry) {
  for (const auto& [type, like] :
       {std::pair("tiny_pass", "tiny_scale"), {"tiny_join", "tiny_add"}}) {
    OpDef unfused = registry.Get(like);
    unfused.type = type;
    unfused.elementwise = false;
    registry.Add(unfused);
    registry.AddKernel(type, registry.Kernels(like)[0]);
  }
  OpDef product = registry.Get("tiny_pass");
  product.type = "tiny_product";
  product.flop = [](const OpContext& context) {
    return static_cast<double>(context.Attr<float>("factor"));
  };
  registry.Add(product);
  registry.AddKernel("tiny_product", registry.Kernels("tiny_scale")[0]);
}

class RecomputePassTest : public ::testing::Test {
 protected:
  RecomputePassTest() {
    tiny::RegisterTinyOps(registry_);
    RegisterCount(registry_);
    RegisterShift(registry_);
    RegisterProduct(registry_);
    OpDef effect = registry_.Get("tiny_copy");
    effect.type = "tiny_effect";
    effect.has_side_effect = true;
    registry_.Add(effect);
    registry_.AddKernel("tiny_effect", registry_.Kernels("tiny_copy")[0]);
    executor_ = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
    executor_->scope().Assign("w", Tensor::FromValues<float>({4}, {1, 2, 3, 4}));
    executor_->scope().Assign("n", Tensor::FromValues<float>({1}, {0}));
  }

  // Ops on float32 [4] variables, a to j; x is fed.
  BoundProgram Bind(const std::string& ops, const FetchList& fetches, MemoryOptions memory) {
    std::string text =
        "program { block 0 { var \"w\" float32 [4] persistable\n"
        "var \"n\" float32 [1] persistable\n";
    for (const char* name : {"x", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) {
      text += std::string("var \"") + name + "\" float32 [4]\n";
    }
    CompileOptions options{.memory = std::move(memory)};
    options.passes.skip = {"fuse_elementwise"};
    auto compiled = executor_->Compile(*ParseProgramText(text + ops + "} }"), options);
    return compiled.Bind({{"x", x_}}, fetches);
  }
  static MemoryOptions Checkpoints(std::vector<std::string> names) {
    return {.recompute = Recompute::kCheckpoints, .checkpoints = std::move(names)};
  }
  // How often a variable is computed.
  static int64_t Computed(const BoundProgram& bound, const std::string& name) {
    const Plan& plan = bound.plan();
    return std::ranges::count_if(plan.instructions, [&](const Instruction& instruction) {
      return std::ranges::any_of(
          instruction.outputs, [&](ValueId output) { return output && plan[output].name == name; });
    });
  }
  static int64_t Count(const BoundProgram& bound, const std::string& type) {
    return std::ranges::count_if(bound.plan().instructions, [&](const Instruction& instruction) {
      return instruction.Name() == type;
    });
  }
  static std::vector<float> Values(BoundProgram bound) {
    bound.Step();
    return bound.fetch(0).ToVector<float>();
  }

  OpRegistry registry_;
  std::unique_ptr<Executor> executor_;
  const Tensor x_ = Tensor::FromValues<float>({4}, {1, 2, 3, 4});
};

// The backward pass reads d, c, b and a in this order.
constexpr const char* kChain = R"(
  {Out: ["a"]} = tiny_scale(X: ["x"]) {factor = 2.0}
  {Out: ["b"]} = tiny_scale(X: ["a"]) {factor = 3.0}
  {Out: ["c"]} = tiny_scale(X: ["b"]) {factor = 4.0}
  {Out: ["d"]} = tiny_scale(X: ["c"]) {factor = 5.0}
  {Out: ["e"]} = tiny_add(X: ["d"], Y: ["c"]) {op_role = 1}
  {Out: ["f"]} = tiny_add(X: ["e"], Y: ["b"]) {op_role = 1}
  {Out: ["g"]} = tiny_add(X: ["f"], Y: ["a"]) {op_role = 1}
)";

TEST_F(RecomputePassTest, KeepsByDefaultWhatIsNotAlmostFree) {
  BoundProgram bound = Bind(kChain, {"g"}, {});
  EXPECT_EQ(bound.statistics().instructions, 7);
  EXPECT_EQ(bound.statistics().recomputed.instructions, 0);
  EXPECT_EQ(RecomputationText(bound.statistics().recomputed), "");
}

// The cheap ops of a, c and e; `flop` is that of each of the products between them. The backward
// pass reads f, e, d, c, b and a, in this order.
std::string ProductsOf(int flop) {
  const std::string product = StrCat(" {factor = ", flop, ".0}\n");
  return "{Out: [\"a\"]} = tiny_pass(X: [\"x\"]) {factor = 2.0}\n"
         "{Out: [\"b\"]} = tiny_product(X: [\"a\"])" +
         product +
         "{Out: [\"c\"]} = tiny_pass(X: [\"b\"]) {factor = 0.5}\n"
         "{Out: [\"d\"]} = tiny_product(X: [\"c\"])" +
         product +
         "{Out: [\"e\"]} = tiny_pass(X: [\"d\"]) {factor = 0.5}\n"
         "{Out: [\"f\"]} = tiny_product(X: [\"e\"])" +
         product + R"(
  {Out: ["g"]} = tiny_join(X: ["f"], Y: ["e"]) {op_role = 1}
  {Out: ["h"]} = tiny_join(X: ["g"], Y: ["d"]) {op_role = 1}
  {Out: ["i"]} = tiny_join(X: ["h"], Y: ["c"]) {op_role = 1}
  {Out: ["j"]} = tiny_join(X: ["i"], Y: ["b"]) {op_role = 1}
  {Out: ["j"]} = tiny_join(X: ["j"], Y: ["a"]) {op_role = 1}
)";
}

// A value has 16 bytes, so a tiny_pass moves 32. 6 FLOP count as a byte: 60,000 of each product
// make a step of 30,000 and a few hundred.
TEST_F(RecomputePassTest, ComputesAgainByDefaultWhatIsAlmostFree) {
  const std::string ops = ProductsOf(60'000);
  BoundProgram kept = Bind(ops, {"j"}, {.recompute = Recompute::kNothing});
  EXPECT_EQ(kept.statistics().instructions, 11);
  BoundProgram bound = Bind(ops, {"j"}, {});
  EXPECT_EQ(Computed(bound, "a"), 2);
  EXPECT_EQ(Computed(bound, "c"), 2);
  EXPECT_EQ(Count(bound, "tiny_product"), 3);
  const PlanStatistics statistics = bound.statistics();
  EXPECT_EQ(statistics.recomputed.instructions, 2);
  EXPECT_EQ(statistics.recomputed.saved_bytes,
            kept.statistics().max_live_bytes - statistics.max_live_bytes);
  EXPECT_GT(statistics.recomputed.saved_bytes, 0);
  EXPECT_NEAR(statistics.recomputed.cost_share, 2 * 32.0 / 30'500, 1e-4);
  EXPECT_EQ(RecomputationText(statistics.recomputed),
            "2 ops are computed again, which saves 0.00 MiB for about 0.2 % of a step");
  EXPECT_EQ(Values(std::move(bound)), Values(std::move(kept)));
}

// One tiny_pass costs 1.5 % of a step of about 2,130 bytes, both 3 %.
TEST_F(RecomputePassTest, KeepsByDefaultWhatWouldExceedTwoPercent) {
  constexpr int kFlop = 3420;
  const BoundProgram bound = Bind(ProductsOf(kFlop), {"j"}, {});
  EXPECT_EQ(Computed(bound, "a") + Computed(bound, "c"), 3);
  const BoundProgram asked = Bind(ProductsOf(kFlop), {"j"}, {.recompute = Recompute::kCheapOps});
  EXPECT_EQ(Computed(asked, "a") + Computed(asked, "c"), 4);
  EXPECT_GT(asked.statistics().recomputed.cost_share, 0.02);
}

TEST_F(RecomputePassTest, DoesNothingByDefaultWhereNothingSharesMemory) {
  const BoundProgram bound = Bind(ProductsOf(60'000), {"j"}, {.policy = ReusePolicy::kNone});
  EXPECT_EQ(bound.statistics().instructions, 11);
}

// b is kept, a isn't.
TEST_F(RecomputePassTest, ComputesAgainWhatLiesBeforeACheckpoint) {
  const std::vector<float> expected = Values(Bind(kChain, {"g"}, {}));
  const BoundProgram bound = Bind(kChain, {"g"}, Checkpoints({"b"}));
  EXPECT_EQ(Computed(bound, "a"), 2);
  EXPECT_EQ(bound.statistics().instructions, 8);
  // Right before the op that reads it.
  const Plan& plan = bound.plan();
  EXPECT_EQ(plan.instructions[6].op, plan.instructions[0].op);
  EXPECT_EQ(Values(bound), expected);
}

// The second segment's b and c are computed from a, the first one has nothing to drop.
TEST_F(RecomputePassTest, ComputesASegmentFromTheCheckpointBeforeIt) {
  const std::vector<float> expected = Values(Bind(kChain, {"g"}, {}));
  const BoundProgram bound = Bind(kChain, {"g"}, Checkpoints({"a", "d"}));
  EXPECT_EQ(Computed(bound, "a"), 1);
  EXPECT_EQ(Computed(bound, "b"), 2);
  EXPECT_EQ(Computed(bound, "c"), 2);
  EXPECT_EQ(Computed(bound, "d"), 1);
  EXPECT_EQ(Values(bound), expected);
}

TEST_F(RecomputePassTest, KeepsWhatIsFetched) {
  BoundProgram bound = Bind(kChain, {"a", "g"}, Checkpoints({"b"}));
  EXPECT_EQ(Computed(bound, "a"), 1);
  EXPECT_THAT(Values(std::move(bound)), ElementsAre(2, 4, 6, 8));
}

TEST_F(RecomputePassTest, KeepsVariablesThatAreSkipped) {
  MemoryOptions memory = Checkpoints({"b"});
  memory.skip = {"a"};
  EXPECT_EQ(Computed(Bind(kChain, {"g"}, memory), "a"), 1);
}

TEST_F(RecomputePassTest, RefusesOptionsThatSayNothing) {
  const auto expect = [&](const MemoryOptions& memory, const std::string& message) {
    ExpectError([&] { Bind(kChain, {"g"}, memory); }, ErrorCode::kInvalidArgument, message);
  };
  expect({.recompute = Recompute::kCheckpoints},
         "option memory.recompute = checkpoints: expected names in memory.checkpoints");
  expect({.checkpoints = {"b"}},
         "option memory.checkpoints: expected memory.recompute = checkpoints, found almost_free");
  expect({.recompute = Recompute::kBudget},
         "option memory.budget_bytes = 0: expected a positive budget");
  expect({.policy = ReusePolicy::kNone, .recompute = Recompute::kCheapOps},
         "option memory.recompute = cheap_ops with memory.policy = none: nothing would be saved, "
         "expected another policy");
}

TEST_F(RecomputePassTest, DrawsTheSameNumbersAgain) {
  constexpr const char* kRandom = R"(
    {Out: ["a"]} = tiny_random(X: ["x"])
    {Out: ["b"]} = tiny_scale(X: ["a"]) {factor = 3.0}
    {Out: ["c"]} = tiny_scale(X: ["b"]) {factor = -3.0}
    {Out: ["d"]} = tiny_add(X: ["c"], Y: ["b"]) {op_role = 1}
    {Out: ["e"]} = tiny_add(X: ["d"], Y: ["a"]) {op_role = 1}
  )";
  const std::vector<float> expected = Values(Bind(kRandom, {"e"}, {}));
  BoundProgram bound = Bind(kRandom, {"e"}, Checkpoints({"b"}));
  EXPECT_EQ(Computed(bound, "a"), 2);
  EXPECT_EQ(Values(std::move(bound)), expected);
}

TEST_F(RecomputePassTest, MovesRunningStatisticsOnce) {
  BoundProgram bound = Bind(R"(
    {Out: ["a"], CountOut: ["n"]} = tiny_count(X: ["x"], Count: ["n"])
    {Out: ["b"]} = tiny_scale(X: ["a"]) {factor = 3.0}
    {Out: ["c"]} = tiny_add(X: ["b"], Y: ["b"])
    {Out: ["d"]} = tiny_add(X: ["c"], Y: ["a"]) {op_role = 1}
  )",
                            {"d"}, Checkpoints({"b"}));
  EXPECT_EQ(Computed(bound, "a"), 2);
  // The rerun must read the value that the first run has left, not one that is overwritten.
  EXPECT_THAT(VerifyPlan(bound.plan()), IsEmpty());
  bound.Step();
  bound.Step();
  EXPECT_EQ(executor_->scope().Find("n")->Item<float>(), 2);
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(7, 14, 21, 28));
}

constexpr const char* kShift = R"(
  {Out: ["a"], Saved: ["b"]} = tiny_shift(X: ["x"])
  {Out: ["c"]} = tiny_scale(X: ["a"]) {factor = 3.0}
  {Out: ["d"]} = tiny_scale(X: ["c"]) {factor = 4.0}
  {Out: ["e"]} = tiny_add(X: ["d"], Y: ["a"]) {op_role = 1}
)";

TEST_F(RecomputePassTest, ReplaysWhatIsComputedForLessFromSavedValues) {
  MemoryOptions memory = Checkpoints({"c"});
  memory.skip = {"b"};  // so it is kept
  BoundProgram bound = Bind(kShift, {"e"}, memory);
  EXPECT_EQ(Count(bound, "tiny_shift"), 1);
  EXPECT_EQ(Count(bound, "tiny_shift_replay"), 1);
  EXPECT_EQ(Computed(bound, "a"), 2);
  EXPECT_THAT(Values(std::move(bound)), ElementsAre(78, 91, 104, 117));
}

TEST_F(RecomputePassTest, RunsTheWholeOpAgainWhereSavedValuesAreNotKept) {
  BoundProgram bound = Bind(kShift, {"e"}, Checkpoints({"c"}));
  EXPECT_EQ(Count(bound, "tiny_shift"), 2);
  EXPECT_THAT(Values(std::move(bound)), ElementsAre(78, 91, 104, 117));
}

// Who else moves them may have done so for good.
TEST_F(RecomputePassTest, KeepsWhatComesFromStatisticsThatAnotherOpHasMoved) {
  BoundProgram bound = Bind(R"(
    {Out: ["a"], CountOut: ["n"]} = tiny_count(X: ["x"], Count: ["n"])
    {Out: ["b"]} = tiny_scale(X: ["a"]) {factor = 3.0}
    {Out: ["c"], CountOut: ["n"]} = tiny_count(X: ["b"], Count: ["n"])
    {Out: ["d"]} = tiny_add(X: ["c"], Y: ["a"]) {op_role = 1}
  )",
                            {"d"}, Checkpoints({"b"}));
  EXPECT_EQ(Computed(bound, "a"), 1);
}

TEST_F(RecomputePassTest, RepeatsNoSideEffect) {
  BoundProgram bound = Bind(R"(
    {Out: ["a"]} = tiny_effect(X: ["x"])
    {Out: ["b"]} = tiny_scale(X: ["a"]) {factor = 3.0}
    {Out: ["c"]} = tiny_add(X: ["b"], Y: ["b"])
    {Out: ["d"]} = tiny_add(X: ["c"], Y: ["a"]) {op_role = 1}
  )",
                            {"d"}, Checkpoints({"b"}));
  EXPECT_EQ(Computed(bound, "a"), 1);
}

// At the place where a would be computed again, w is another.
TEST_F(RecomputePassTest, KeepsWhatComesFromAVariableThatHasChangedSince) {
  constexpr const char* kUpdate = R"(
    {Out: ["a"]} = tiny_add(X: ["x"], Y: ["w"])
    {Out: ["b"]} = tiny_scale(X: ["a"]) {factor = 3.0}
    {Out: ["c"]} = tiny_add(X: ["b"], Y: ["b"])
    {Out: ["d"]} = tiny_scale(X: ["c"]) {op_role = 1}
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["d"]) {op_role = 2}
    {Out: ["e"]} = tiny_add(X: ["d"], Y: ["a"]) {op_role = 1}
  )";
  BoundProgram bound = Bind(kUpdate, {"e"}, Checkpoints({"b"}));
  EXPECT_EQ(Computed(bound, "a"), 1);
  EXPECT_THAT(Values(std::move(bound)), ElementsAre(14, 28, 42, 56));
}

TEST_F(RecomputePassTest, LeastMemoryNeedsLessAndABudgetIsMet) {
  std::string ops;
  const std::string names = "xabcdefghij";
  // Held until the backward pass, which is one op that reads all of them in turn.
  for (size_t i = 1; i < names.size() - 1; ++i) {
    ops += "{Out: [\"" + names.substr(i, 1) + "\"]} = tiny_copy(X: [\"" + names.substr(i - 1, 1) +
           "\"])\n";
  }
  for (size_t i = names.size() - 2; i > 0; --i) {
    ops += "{Out: [\"j\"]} = tiny_add(X: [\"" + names.substr(i, 1) + "\"], Y: [\"" +
           (i == names.size() - 2 ? std::string("x") : std::string("j")) + "\"]) {op_role = 1}\n";
  }
  const int64_t kept = Bind(ops, {"j"}, {}).statistics().planned_bytes;
  const std::vector<float> expected = Values(Bind(ops, {"j"}, {}));
  BoundProgram least = Bind(ops, {"j"}, {.recompute = Recompute::kLeastMemory});
  const int64_t smallest = least.statistics().planned_bytes;
  EXPECT_LE(4 * smallest, 3 * kept);
  EXPECT_EQ(Values(std::move(least)), expected);

  const MemoryOptions budget{.recompute = Recompute::kBudget, .budget_bytes = smallest};
  BoundProgram met = Bind(ops, {"j"}, budget);
  EXPECT_LE(met.statistics().planned_bytes, smallest);
  EXPECT_EQ(Values(std::move(met)), expected);
  // No more is computed again than what the budget asks for.
  const MemoryOptions enough{.recompute = Recompute::kBudget, .budget_bytes = kept};
  EXPECT_EQ(Bind(ops, {"j"}, enough).statistics().instructions,
            Bind(ops, {"j"}, {}).statistics().instructions);
  const MemoryOptions impossible{.recompute = Recompute::kBudget, .budget_bytes = smallest - 1};
  ExpectError([&] { Bind(ops, {"j"}, impossible); }, ErrorCode::kResourceExhausted,
              StrCat("option memory.budget_bytes = ", smallest - 1, ": the arena takes at least ",
                     smallest, " bytes, however much is recomputed"));
}

TEST_F(RecomputePassTest, RefusesCheckpointsThatTheForwardPassDoesNotCompute) {
  ExpectError([&] { Bind(kChain, {"g"}, Checkpoints({"nobody"})); }, ErrorCode::kNotFound,
              "recompute: the program computes no checkpoint \"nobody\"");
  ExpectError([&] { Bind(kChain, {"g"}, Checkpoints({"f"})); }, ErrorCode::kInvalidArgument,
              "recompute: the checkpoint \"f\" is no value of the forward pass");
}

// The fetches may change from run to run.
TEST_F(RecomputePassTest, TakesACheckpointThatThisRunDoesNotNeed) {
  const std::string ops = std::string(kChain) + R"({Out: ["h"]} = tiny_scale(X: ["a"]))";
  const BoundProgram bound = Bind(ops, {"g"}, Checkpoints({"b", "h"}));
  EXPECT_EQ(Computed(bound, "h"), 0);
  EXPECT_EQ(Computed(bound, "a"), 2);
}

TEST_F(RecomputePassTest, KeepsACheckpointThatIsWhatAnotherOpHasComputed) {
  const std::string twins = R"(
    {Out: ["a"]} = tiny_scale(X: ["x"]) {factor = 2.0}
    {Out: ["b"]} = tiny_scale(X: ["x"]) {factor = 2.0}
    {Out: ["c"]} = tiny_add(X: ["a"], Y: ["b"])
    {Out: ["d"]} = tiny_add(X: ["c"], Y: ["b"]) {op_role = 1}
  )";
  EXPECT_EQ(Computed(Bind(twins, {"d"}, {}), "b"), 0);
  EXPECT_EQ(Computed(Bind(twins, {"d"}, Checkpoints({"b"})), "b"), 1);
}

TEST_F(RecomputePassTest, DoesNothingWithoutABackwardPass) {
  const BoundProgram bound =
      Bind("{Out: [\"a\"]} = tiny_copy(X: [\"x\"])", {"a"}, {.recompute = Recompute::kLeastMemory});
  EXPECT_EQ(bound.statistics().instructions, 1);
}

}  // namespace
}  // namespace skiff
