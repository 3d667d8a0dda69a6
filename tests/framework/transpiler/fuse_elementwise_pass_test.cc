#include "framework/transpiler/fuse_elementwise_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/verify_plan.h"
#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/plan/plan_text.h"
#include "framework/transpiler/memory_reuse_pass.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

// Uses blocks of 16 elements, and arrays of 40 unless a test says otherwise. Variables: x is fed, w
// and v are in the scope, a to f are computed.
class FuseElementwisePassTest : public ::testing::Test {
 protected:
  static constexpr int64_t kBlock = FuseElementwisePass::kVectorElements;

  FuseElementwisePassTest() {
    tiny::RegisterTinyOps(registry_);
    executor_ = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
  }

  // A copy of tiny_copy under another name.
  template <typename Edit>
  void AddVariant(const std::string& type, const Edit& edit) {
    OpDef def = registry_.Get("tiny_copy");
    KernelDef kernel = registry_.Kernels("tiny_copy")[0];
    def.type = type;
    edit(&def, &kernel);
    registry_.Add(def);
    registry_.AddKernel(type, kernel);
  }

  BoundProgram Bind(const std::string& ops, const FetchList& fetches, CompileOptions options = {},
                    const Shape& shape = {40}) {
    const std::string dims = " float32 [" + Join(shape.ToVector(), ", ") + "]";
    std::string vars;
    for (const char* name : {"w", "v"}) {
      vars += "var " + std::string(name) + dims + " persistable\n";
      executor_->scope().Set(name, Ones(shape));
    }
    for (const char* name : {"x", "a", "b", "c", "d", "e", "f"}) {
      vars += "var " + std::string(name) + dims + "\n";
    }
    vars += "var s float32 [1]\n";
    options.passes.skip.insert(options.passes.skip.end(),
                               {"fuse_elementwise", "order", "memory_reuse"});
    if (fuses_) options.passes.plan_passes.push_back(std::make_shared<FuseElementwisePass>(kBlock));
    options.passes.plan_passes.push_back(std::make_shared<MemoryReusePass>());
    options.passes.plan_observer = [](const PassReport&, const Plan& plan) { CheckPlan(plan); };
    x_ = Ones(shape);
    for (int64_t i = 0; i < x_.element_count(); ++i) x_.data<float>()[i] = static_cast<float>(i);
    const auto program = ParseProgramText("program { block 0 {" + vars + ops + "} }");
    return executor_->Compile(*program, options).Bind({{"x", x_}}, fetches);
  }

  static Tensor Ones(const Shape& shape) {
    Tensor ones(shape, DType::kFloat32);
    for (float& value : ones.values<float>()) value = 1;
    return ones;
  }

  static std::vector<std::string> Names(const BoundProgram& bound) {
    std::vector<std::string> names;
    for (const Instruction& i : bound.plan().instructions) names.push_back(i.Name());
    return names;
  }

  // That nothing is fused.
  void ExpectLeft(const std::string& ops, const FetchList& fetches,
                  const CompileOptions& options = {}, const Shape& shape = {40}) {
    EXPECT_THAT(Names(Bind(ops, fetches, options, shape)), Each(Not(StartsWith("fused"))));
  }

  static std::vector<std::vector<float>> Run(BoundProgram bound, size_t fetches) {
    bound.Step();
    std::vector<std::vector<float>> values;
    for (size_t i = 0; i < fetches; ++i) values.push_back(bound.fetch(i).ToVector<float>());
    return values;
  }

  // That it is fused to these instructions, and computes what it computes unfused.
  void ExpectFused(const std::string& ops, const FetchList& fetches,
                   const std::vector<std::string>& names, const Shape& shape = {40}) {
    BoundProgram fused = Bind(ops, fetches, {}, shape);
    EXPECT_EQ(Names(fused), names);
    const auto values = Run(std::move(fused), fetches.size());
    fuses_ = false;
    EXPECT_EQ(values, Run(Bind(ops, fetches, {}, shape), fetches.size()));
    fuses_ = true;
  }

  static const PlanValue& Value(const BoundProgram& bound, std::string_view name) {
    return *std::ranges::find(bound.plan().values, name, &PlanValue::name);
  }

  OpRegistry registry_;
  std::unique_ptr<Executor> executor_;
  bool fuses_ = true;
  Tensor x_;
};

constexpr const char* kChain = R"(
  {Out: [a]} = tiny_scale(X: [x]) {factor = 3.0}
  {Out: [b]} = tiny_add(X: [a], Y: [w])
  {Out: [c]} = tiny_scale(X: [b]) {factor = 2.0})";

TEST_F(FuseElementwisePassTest, FusesAChainAndKeepsNothingInBetween) {
  ExpectFused(kChain, {"c"}, {"fused(tiny_scale,tiny_add,tiny_scale)"});
  const BoundProgram bound = Bind(kChain, {"c"});
  for (const char* name : {"a", "b"}) EXPECT_LT(Value(bound, name).offset, 0) << name;
  EXPECT_EQ(bound.statistics().unshared_bytes, 160);
}

TEST_F(FuseElementwisePassTest, KeepsWhatSomebodyElseReads) {
  ExpectFused(kChain, {"a", "c"}, {"fused(tiny_scale,tiny_add,tiny_scale)"});
  ExpectFused(std::string(kChain) + "{Out: [s]} = tiny_sum(X: [b])", {"s", "c"},
              {"fused(tiny_scale,tiny_add,tiny_scale)", "tiny_sum"});
}

TEST_F(FuseElementwisePassTest, FusesBranches) {
  ExpectFused(R"(
    {Out: [a]} = tiny_scale(X: [x]) {factor = 2.0}
    {Out: [b]} = tiny_copy(X: [w])
    {Out: [c]} = tiny_scale(X: [b]) {factor = 5.0}
    {Out: [d]} = tiny_add(X: [a], Y: [c])
    {Out: [e]} = tiny_add(X: [d], Y: [a]))",
              {"e"}, {"fused(tiny_scale,tiny_copy,tiny_scale,tiny_add,tiny_add)"});
}

TEST_F(FuseElementwisePassTest, ComputesTheSameForAnyExtentAndNumberOfThreads) {
  for (int threads : {1, 2, 3}) {
    const harness::ThreadCount scope(threads);
    for (int64_t extent : {17, 32, 33, 48, 65, 121, 256}) {
      ExpectFused(std::string(kChain) + "{Out: [d]} = tiny_add(X: [c], Y: [x])", {"b", "d"},
                  {"fused(tiny_scale,tiny_add,tiny_scale,tiny_add)"}, {extent});
    }
  }
}

TEST_F(FuseElementwisePassTest, RunsOnOtherThreadsThanItWasPreparedFor) {
  std::vector<BoundProgram> bound;
  {
    const harness::ThreadCount three(3);
    bound.push_back(Bind(kChain, {"c"}, {}, {256}));
  }
  EXPECT_EQ(bound[0].plan().instructions[0].blocks.part_count, 3);
  const auto expected = Run(bound[0], 1);
  for (int threads : {1, 2}) {
    const harness::ThreadCount fewer(threads);
    EXPECT_EQ(Run(bound[0], 1), expected);
  }
}

TEST_F(FuseElementwisePassTest, RunsAllOpsOnABlockBeforeTheNext) {
  std::vector<std::string> calls;
  for (const char* type : {"first", "second"}) {
    AddVariant(type, [&](OpDef*, KernelDef* kernel) {
      kernel->prepare = [&calls, type](PrepareContext&) {
        return MakeKernel([&calls, type](const KernelContext& run) {
          calls.push_back(StrCat(type, " ", run.output(0).element_count()));
          CopyTensor(run.input(0), &run.output(0));
        });
      };
    });
  }
  const harness::ThreadCount one(1);
  BoundProgram bound = Bind("{Out: [a]} = first(X: [x]) {Out: [b]} = second(X: [a])", {"b"});
  bound.Step();
  EXPECT_THAT(calls,
              ElementsAre("first 16", "second 16", "first 16", "second 16", "first 8", "second 8"));
  EXPECT_EQ(bound.fetch(0).ToVector<float>(), x_.ToVector<float>());
}

TEST_F(FuseElementwisePassTest, ReadsTheFeedsOfEachRunAndLetsGoOfThem) {
  const BoundProgram unused = Bind(kChain, {"c"});
  const auto program = ParseProgramText(R"(program { block 0 {
    var x float32 [-1]
    var a float32 [-1]
    var b float32 [-1]
    {Out: [a]} = tiny_scale(X: [x]) {factor = 3.0}
    {Out: [b]} = tiny_scale(X: [a]) {factor = 2.0}
  } })");
  CompiledProgram compiled = executor_->Compile(*program);
  const int64_t extent = FuseElementwisePass::kBlockElements + 1;
  for (float value : {1.0f, 2.0f}) {
    const Tensor fed =
        Tensor::FromValues<float>({extent}, std::vector<float>(static_cast<size_t>(extent), value));
    const Tensor out = compiled.Run({{"x", fed}}, {"b"})[0];
    EXPECT_EQ(out.ToVector<float>(), std::vector<float>(static_cast<size_t>(extent), 6 * value));
    EXPECT_EQ(fed.buffer().use_count(), 1);
  }
}

TEST_F(FuseElementwisePassTest, MovesOpsAfterThoseThatTheyDoNotFeed) {
  ExpectFused(R"(
    {Out: [a]} = tiny_scale(X: [x]) {factor = 3.0}
    {Out: [s]} = tiny_sum(X: [w])
    {Out: [b]} = tiny_scale(X: [a]) {factor = 2.0})",
              {"s", "b"}, {"tiny_sum", "fused(tiny_scale,tiny_scale)"});
}

TEST_F(FuseElementwisePassTest, LeavesOpsWhoseResultIsReadInBetween) {
  ExpectLeft(R"(
    {Out: [a]} = tiny_scale(X: [x]) {factor = 3.0}
    {Out: [s]} = tiny_sum(X: [a])
    {Out: [c]} = tiny_scale(X: [a]))",
             {"s", "a", "c"});
}

TEST_F(FuseElementwisePassTest, LeavesOpsWhoseInputInTheScopeIsWrittenInBetween) {
  constexpr const char* kOps = R"(
    {Out: [a]} = tiny_scale(X: [w])
    {Out: [b]} = tiny_workspace(X: [x])
    {ParamOut: [%]} = tiny_sgd(Param: [%], Grad: [b])
    {Out: [c]} = tiny_scale(X: [a]))";
  const auto with = [&](char written) {
    std::string ops = kOps;
    std::ranges::replace(ops, '%', written);
    return ops;
  };
  ExpectLeft(with('w'), {"c"});
  ExpectFused(with('v'), {"c"}, {"tiny_workspace", "tiny_sgd", "fused(tiny_scale,tiny_scale)"});
}

TEST_F(FuseElementwisePassTest, LeavesOpsThatWriteToTheScope) {
  ExpectLeft(R"(
    {Out: [a]} = tiny_scale(X: [x])
    {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [a]))",
             {});
}

TEST_F(FuseElementwisePassTest, LeavesArraysOfOneBlockOrWithoutElements) {
  for (int64_t extent : {0, 1, 15, 16}) ExpectLeft(kChain, {"c"}, {}, {extent});
}

TEST_F(FuseElementwisePassTest, LeavesOpsThatOnlyShareAnInput) {
  ExpectLeft("{Out: [a]} = tiny_scale(X: [x]) {Out: [b]} = tiny_copy(X: [x])", {"a", "b"});
}

TEST_F(FuseElementwisePassTest, LeavesOpsThatDoNotQualify) {
  AddVariant("whole", [](OpDef* def, KernelDef*) { def->elementwise = false; });
  AddVariant("effect", [](OpDef* def, KernelDef*) { def->has_side_effect = true; });
  AddVariant("random", [](OpDef* def, KernelDef*) { def->random = true; });
  AddVariant("checks", [](OpDef* def, KernelDef*) { def->inputs[0].checks_data = true; });
  AddVariant("workspace", [](OpDef*, KernelDef* kernel) {
    kernel->prepare = [prepare = kernel->prepare](PrepareContext& context) {
      context.RequestWorkspace(16);
      return prepare(context);
    };
  });
  AddVariant("derived", [](OpDef*, KernelDef* kernel) {
    kernel->prepare = [prepare = kernel->prepare](PrepareContext& context) {
      context.RequestDerivedForm(
          {.inputs = {0}, .bytes = 16, .refresh = [](const KernelContext&, void*) {}});
      return prepare(context);
    };
  });
  AddVariant("large", [](OpDef*, KernelDef* kernel) {
    kernel->accepts = [](const OpContext& context) {
      return context.Input("X").shape.element_count() > kBlock;
    };
  });
  for (const char* type :
       {"whole", "effect", "random", "checks", "workspace", "derived", "large"}) {
    SCOPED_TRACE(type);
    ExpectLeft(StrCat("{Out: [a]} = tiny_scale(X: [x]) {Out: [b]} = ", type, "(X: [a])"), {"b"});
  }
}

TEST_F(FuseElementwisePassTest, LeavesOpsWhoseKernelIsForced) {
  ExpectLeft("{Out: [a]} = tiny_scale(X: [x]) {Out: [b]} = tiny_copy(X: [a])", {"b"},
             {.kernels = {{"tiny_copy", "plain"}}});
}

TEST_F(FuseElementwisePassTest, PrefersTheKernelOfTheWholeArray) {
  std::string ran;
  AddVariant("choice", [&](OpDef*, KernelDef* kernel) {
    kernel->name = "for_many";
    kernel->priority = 1;
    kernel->is_worthwhile = [](const OpContext& context) {
      return context.Input("X").shape.element_count() > kBlock;
    };
    kernel->prepare = [&, prepare = kernel->prepare](PrepareContext& context) {
      ran += "many ";
      return prepare(context);
    };
  });
  registry_.AddKernel("choice", {.prepare = [&](PrepareContext&) -> std::unique_ptr<Kernel> {
                        ran += "few ";
                        return MakeKernel([](const KernelContext&) {});
                      }});
  ExpectFused("{Out: [a]} = tiny_scale(X: [x]) {Out: [b]} = choice(X: [a])", {"b"},
              {"fused(tiny_scale,choice)"});
  EXPECT_THAT(ran, Not(::testing::HasSubstr("few")));
}

// tiny_workspace makes a value of the arena.
TEST_F(FuseElementwisePassTest, WorksInPlaceOnAnInputThatIsReadBeforeItIsWritten) {
  constexpr const char* kOps = R"(
    {Out: [a]} = tiny_workspace(X: [x])
    {Out: [b]} = tiny_scale(X: [a]) {factor = 2.0}
    {Out: [c]} = tiny_add(X: [b], Y: [w]))";
  ExpectFused(kOps, {"c"}, {"tiny_workspace", "fused(tiny_scale,tiny_add)"});
  EXPECT_TRUE(Value(Bind(kOps, {"c"}), "c").alias_of);
}

TEST_F(FuseElementwisePassTest, LeavesAnInputThatIsReadAfterBlocksAreWritten) {
  // b is computed in the place of c, and then a is read again.
  constexpr const char* kOps = R"(
    {Out: [a]} = tiny_workspace(X: [x])
    {Out: [b]} = tiny_scale(X: [a]) {factor = 2.0}
    {Out: [c]} = tiny_add(X: [b], Y: [a]))";
  ExpectFused(kOps, {"c"}, {"tiny_workspace", "fused(tiny_scale,tiny_add)"});
  EXPECT_FALSE(Value(Bind(kOps, {"c"}), "c").alias_of);
  // The op that writes first doesn't work in place.
  constexpr const char* kCopies = R"(
    {Out: [a]} = tiny_workspace(X: [x])
    {Out: [b]} = tiny_copy(X: [a])
    {Out: [c]} = tiny_scale(X: [b]) {factor = 2.0})";
  ExpectFused(kCopies, {"c"}, {"tiny_workspace", "fused(tiny_copy,tiny_scale)"});
  EXPECT_FALSE(Value(Bind(kCopies, {"c"}), "c").alias_of);
}

TEST_F(FuseElementwisePassTest, TakesScratchMemoryForABlockOfWhatIsNotComputedInPlace) {
  const harness::ThreadCount one(1);
  constexpr const char* kOps = R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_copy(X: [a])
    {Out: [c]} = tiny_add(X: [b], Y: [a]))";
  ExpectFused(kOps, {"c"}, {"fused(tiny_copy,tiny_copy,tiny_add)"});
  // b becomes c in its place; a has a block of 16 floats.
  EXPECT_EQ(Bind(kOps, {"c"}).statistics().planned_bytes, 192 + 64);
}

TEST_F(FuseElementwisePassTest, LeavesOpsThatWouldKeepMoreAliveThanTheyMake) {
  // Fused with the sum, a and b would both live on, instead of only c in the place of a.
  constexpr const char* kTwoInputs = R"(
    {Out: [a]} = tiny_workspace(X: [x])
    {Out: [b]} = tiny_workspace(X: [w])
    {Out: [c]} = tiny_add(X: [a], Y: [b])
    {Out: [d]} = tiny_workspace(X: [v])
    {Out: [s]} = tiny_sum(X: [d])
    {Out: [e]} = tiny_scale(X: [c]) {factor = 2.0})";
  ExpectLeft(kTwoInputs, {"s", "e"}, {}, {64});
  constexpr const char* kOneInput = R"(
    {Out: [a]} = tiny_workspace(X: [x])
    {Out: [c]} = tiny_scale(X: [a]) {factor = 5.0}
    {Out: [d]} = tiny_workspace(X: [v])
    {Out: [s]} = tiny_sum(X: [d])
    {Out: [e]} = tiny_scale(X: [c]) {factor = 2.0})";
  ExpectFused(kOneInput, {"s", "e"},
              {"tiny_workspace", "tiny_workspace", "tiny_sum", "fused(tiny_scale,tiny_scale)"},
              {64});
}

TEST_F(FuseElementwisePassTest, RefusesToRunAfterMemoryReuse) {
  const auto late = std::make_shared<FuseElementwisePass>(kBlock);
  const auto program = ParseProgramText(R"(program { block 0 {
    var x float32 [40]
    var a float32 [40]
    {Out: [a]} = tiny_scale(X: [x])
  } })");
  CompiledProgram compiled = executor_->Compile(*program, {.passes = {.plan_passes = {late}}});
  EXPECT_THROW(compiled.Run({{"x", Ones({40})}}, {"a"}), Error);
}

TEST_F(FuseElementwisePassTest, IsNamedInTimesAndInThePrintedPlan) {
  BoundProgram bound = Bind(kChain, {"c"});
  EXPECT_EQ(bound.TimedStep().at(0).type, "fused(tiny_scale,tiny_add,tiny_scale)");
  EXPECT_THAT(PrintPlan(bound.plan()),
              ::testing::ContainsRegex("fused .c#[0-9]+ .* from .x#[0-9]+, w#[0-9]+. elements="));
}

}  // namespace
}  // namespace skiff
