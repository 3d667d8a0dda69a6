#include "framework/transpiler/common_subexpression_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

class CommonSubexpressionPassTest : public ::testing::Test {
 protected:
  CommonSubexpressionPassTest() {
    tiny::RegisterTinyOps(registry_);
    OpDef check = registry_.Get("tiny_copy");
    check.type = "tiny_effect";
    check.has_side_effect = true;
    registry_.Add(check);
    registry_.AddKernel("tiny_effect", registry_.Kernels("tiny_copy")[0]);
    executor_ = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
    executor_->scope().Set("w", Tensor::FromValues<float>({4}, {1, 2, 3, 4}));
  }

  // `extent`: of all variables.
  BoundProgram Bind(const std::string& ops, const FetchList& fetches, bool merge = true,
                    int64_t extent = 4) {
    const std::string shape = " float32 [" + std::to_string(extent) + "]";
    std::string vars = "var w" + shape + " persistable\n";
    for (const char* name : {"x", "a", "b", "c", "d", "e"}) {
      vars += "var " + std::string(name) + shape + "\n";
    }
    const auto program = ParseProgramText("program { block 0 {" + vars + ops + "} }");
    x_ = Tensor({extent}, DType::kFloat32);
    for (int64_t i = 0; i < extent; ++i) x_.data<float>()[i] = static_cast<float>(i);
    CompileOptions options;
    if (!merge) options.passes.skip = {"common_subexpression"};
    return executor_->Compile(*program, options).Bind({{"x", x_}}, fetches);
  }

  // The types of the instructions that are left.
  std::vector<std::string> Types(const std::string& ops, const FetchList& fetches) {
    std::vector<std::string> types;
    const BoundProgram bound = Bind(ops, fetches);
    for (const Instruction& instruction : bound.plan().instructions) {
      types.push_back(instruction.kind == InstructionKind::kCopy ? "copy" : instruction.op->type);
    }
    return types;
  }

  OpRegistry registry_;
  std::unique_ptr<Executor> executor_;
  Tensor x_;
};

TEST_F(CommonSubexpressionPassTest, ComputesEqualInstructionsOnce) {
  constexpr const char* kTwice = R"(
    {Out: [a]} = tiny_scale(X: [x]) {factor = 3.0}
    {Out: [b]} = tiny_scale(X: [x]) {factor = 3.0}
    {Out: [c]} = tiny_add(X: [a], Y: [b]))";
  EXPECT_THAT(Types(kTwice, {"c"}), ElementsAre("tiny_scale", "tiny_add"));
  BoundProgram bound = Bind(kTwice, {"c"});
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(0, 6, 12, 18));
}

TEST_F(CommonSubexpressionPassTest, MergesWhatBecameEqualByMerging) {
  EXPECT_THAT(Types(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_copy(X: [x])
    {Out: [c]} = tiny_scale(X: [a])
    {Out: [d]} = tiny_scale(X: [b])
    {Out: [e]} = tiny_add(X: [c], Y: [d]))",
                    {"e"}),
              ElementsAre("tiny_copy", "tiny_scale", "tiny_add"));
}

// The contents of the second of two equal values may be the ones that the lowering has needed.
TEST_F(CommonSubexpressionPassTest, KeepsContentsThatAreKnown) {
  const BoundProgram bound = Bind(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_copy(X: [x])
    {Out: [c]} = tiny_add(X: [a], Y: [b]))",
                                  {"c"}, /*merge=*/false);
  Plan plan = bound.plan();
  // As before ops in place are found.
  for (const ValueId value : plan.ids()) plan[value].alias_of = {};
  ASSERT_EQ(plan.instructions.size(), 3u);
  const ValueId first = plan.instructions[0].outputs[0];
  const auto contents = std::make_shared<const Tensor>(x_);
  plan[plan.instructions[1].outputs[0]].meta.contents = contents;
  ASSERT_EQ(plan[first].meta.contents, nullptr);
  CommonSubexpressionPass().Apply({.registry = registry_}, &plan);
  EXPECT_EQ(plan.instructions.size(), 2u);
  EXPECT_EQ(plan[first].meta.contents, contents);
}

TEST_F(CommonSubexpressionPassTest, TellsAttributesApart) {
  EXPECT_THAT(Types(R"(
    {Out: [a]} = tiny_scale(X: [x]) {factor = 3.0}
    {Out: [b]} = tiny_scale(X: [x]) {factor = 2.0}
    {Out: [c]} = tiny_add(X: [a], Y: [b]))",
                    {"c"}),
              ElementsAre("tiny_scale", "tiny_scale", "tiny_add"));
}

TEST_F(CommonSubexpressionPassTest, TakesADefaultForItsValueAndIgnoresNotes) {
  EXPECT_THAT(Types(R"(
    {Out: [a]} = tiny_scale(X: [x]) {op_role = 1}
    {Out: [b]} = tiny_scale(X: [x]) {factor = 1.0, op_namescope = "/b/"}
    {Out: [c]} = tiny_add(X: [a], Y: [b]))",
                    {"c"}),
              ElementsAre("tiny_scale", "tiny_add"));
}

// The definition of tiny_copy lists no factor, its kernel reads one.
TEST_F(CommonSubexpressionPassTest, TellsUnlistedAttributesApart) {
  const std::vector<std::pair<std::string, std::string>> attributes = {
      {"{factor = 2.0}", "{factor = 3.0}"}, {"{factor = 2.0}", ""}, {"", "{factor = 2.0}"}};
  for (const auto& [first, second] : attributes) {
    EXPECT_THAT(Types("{Out: [a]} = tiny_copy(X: [x])" + first + "{Out: [b]} = tiny_copy(X: [x])" +
                          second + "{Out: [c]} = tiny_add(X: [a], Y: [b])",
                      {"c"}),
                ElementsAre("tiny_copy", "tiny_copy", "tiny_add"));
  }
}

TEST_F(CommonSubexpressionPassTest, TellsOperandsApartByTheirPlace) {
  EXPECT_THAT(Types(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_add(X: [a], Y: [x])
    {Out: [c]} = tiny_add(X: [x], Y: [a])
    {Out: [d]} = tiny_add(X: [b], Y: [c]))",
                    {"d"}),
              ElementsAre("tiny_copy", "tiny_add", "tiny_add", "tiny_add"));
}

TEST_F(CommonSubexpressionPassTest, KeepsEveryFetchedName) {
  BoundProgram bound = Bind(R"(
    {Out: [a]} = tiny_scale(X: [x]) {factor = 3.0}
    {Out: [b]} = tiny_scale(X: [x]) {factor = 3.0}
    {Out: [c]} = tiny_scale(X: [b]) {factor = 2.0})",
                            {"a", "b", "c"});
  EXPECT_EQ(bound.statistics().instructions, 2);
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(bound.fetch(1).ToVector<float>(), ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(bound.fetch(2).ToVector<float>(), ElementsAre(0, 6, 12, 18));
}

// a is overwritten between the two: the definitions differ though the names are the same.
TEST_F(CommonSubexpressionPassTest, SeesThatAnInputWasWrittenInBetween) {
  BoundProgram bound = Bind(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_scale(X: [a]) {factor = 3.0}
    {Out: [a]} = tiny_scale(X: [a]) {factor = 2.0}
    {Out: [c]} = tiny_scale(X: [a]) {factor = 3.0})",
                            {"b", "c"});
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(bound.fetch(1).ToVector<float>(), ElementsAre(0, 6, 12, 18));
}

// The result of the first is overwritten by name before the second is read.
TEST_F(CommonSubexpressionPassTest, KeepsAResultWhoseNameIsWrittenAgain) {
  BoundProgram bound = Bind(R"(
    {Out: [a]} = tiny_scale(X: [x]) {factor = 3.0}
    {Out: [b]} = tiny_scale(X: [x]) {factor = 3.0}
    {Out: [a]} = tiny_scale(X: [a]) {factor = 2.0}
    {Out: [c]} = tiny_add(X: [a], Y: [b]))",
                            {"c", "b"});
  EXPECT_EQ(bound.statistics().instructions, 3);
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(0, 9, 18, 27));
  EXPECT_THAT(bound.fetch(1).ToVector<float>(), ElementsAre(0, 3, 6, 9));
}

TEST_F(CommonSubexpressionPassTest, ReadsAParameterAnewAfterItsUpdate) {
  BoundProgram bound = Bind(R"(
    {Out: [a]} = tiny_scale(X: [w]) {factor = 3.0}
    {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [x])
    {Out: [b]} = tiny_scale(X: [w]) {factor = 3.0})",
                            {"a", "b"});
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(bound.fetch(1).ToVector<float>(), ElementsAre(3, 3, 3, 3));
}

TEST_F(CommonSubexpressionPassTest, RepeatsWhatDrawsNumbersHasAnEffectOrWritesToTheScope) {
  EXPECT_THAT(Types(R"(
    {Out: [a]} = tiny_random(X: [x])
    {Out: [b]} = tiny_random(X: [x])
    {Out: [c]} = tiny_add(X: [a], Y: [b]))",
                    {"c"}),
              ElementsAre("tiny_random", "tiny_random", "tiny_add"));
  EXPECT_THAT(Types(R"(
    {Out: [a]} = tiny_effect(X: [x])
    {Out: [b]} = tiny_effect(X: [x]))",
                    {}),
              ElementsAre("tiny_effect", "tiny_effect"));
  EXPECT_THAT(Types(R"(
    {Out: [w]} = tiny_scale(X: [x])
    {Out: [a]} = tiny_scale(X: [x]))",
                    {"a"}),
              ElementsAre("tiny_scale", "tiny_scale"));
}

TEST_F(CommonSubexpressionPassTest, MergesOpsWithoutInputs) {
  EXPECT_THAT(Types(R"(
    {Out: [a]} = tiny_fill() {shape = longs [4]}
    {Out: [b]} = tiny_fill() {shape = longs [4]}
    {Out: [c]} = tiny_add(X: [a], Y: [b]))",
                    {"c"}),
              ElementsAre("tiny_fill", "tiny_add"));
}

// When c is computed, a is gone and the second b isn't there yet.
TEST_F(CommonSubexpressionPassTest, NeverHoldsALargeResultForLater) {
  constexpr const char* kApart = R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [d]} = tiny_sum(X: [a])
    {Out: [b]} = tiny_workspace(X: [x])
    {Out: [c]} = tiny_negated(W: [b])
    {Out: [b]} = tiny_copy(X: [x])
    {Out: [e]} = tiny_add(X: [b], Y: [c]))";
  constexpr int64_t kLarge = CommonSubexpressionPass::kCheapBytes / 4 + 1;
  for (const int64_t extent : {kLarge - 1, kLarge}) {
    const BoundProgram merged = Bind(kApart, {"d", "e"}, true, extent);
    const BoundProgram plain = Bind(kApart, {"d", "e"}, false, extent);
    const bool is_cheap = extent < kLarge;
    EXPECT_EQ(merged.statistics().instructions, is_cheap ? 5 : 6) << extent;
    if (!is_cheap) {
      EXPECT_EQ(merged.statistics().max_live_bytes, plain.statistics().max_live_bytes);
    }
  }
}

// a lives up to the first b, which takes a's place and lives up to the second one, and so on.
TEST_F(CommonSubexpressionPassTest, MergesALargeResultThatLivesOnAnyway) {
  constexpr const char* kOverlapping = R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_copy(X: [x])
    {Out: [c]} = tiny_negated(W: [a])
    {Out: [c]} = tiny_add(X: [c], Y: [c])
    {Out: [d]} = tiny_copy(X: [x])
    {Out: [e]} = tiny_add(X: [b], Y: [c])
    {Out: [e]} = tiny_add(X: [e], Y: [d]))";
  constexpr int64_t kExtent = CommonSubexpressionPass::kCheapBytes;
  const BoundProgram merged = Bind(kOverlapping, {"e"}, true, kExtent);
  const BoundProgram plain = Bind(kOverlapping, {"e"}, false, kExtent);
  EXPECT_EQ(merged.statistics().instructions, 5);
  EXPECT_LE(merged.statistics().max_live_bytes, plain.statistics().max_live_bytes);
}

}  // namespace
}  // namespace skiff
