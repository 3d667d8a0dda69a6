#include "framework/executor/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/io/safetensors.h"
#include "framework/ir/text.h"
#include "framework/plan/plan.h"
#include "framework/tensor/replaced_values.h"
#include "memory/reuse_policy.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two chains from x; the update of w comes last.
constexpr const char* kTraining = R"(program {
  block 0 {
    var "x" float32 [-1]
    var "a" float32 [-1]
    var "b" float32 [-1]
    var "c" float32 [-1]
    var "loss" float32 [1]
    param "w" float32 [3] persistable
    {Out: ["a"]} = tiny_add(X: ["x"], Y: ["w"])
    {Out: ["b"]} = tiny_scale(X: ["a"]) {factor = 2.0}
    {Out: ["c"]} = tiny_scale(X: ["b"]) {factor = 10.0}
    {Out: ["loss"]} = tiny_sum(X: ["c"])
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["x"]) {op_role = 2}
  }
})";

class ExecutorTest : public ::testing::Test {
 protected:
  ExecutorTest() {
    tiny::RegisterTinyOps(registry_);
    executor_ = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
    SetW({1, 1, 1});
  }

  void SetW(const std::vector<float>& values) {
    executor_->scope().Assign("w", Tensor::FromValues<float>({3}, values));
  }
  std::vector<float> W() const { return executor_->scope().Get("w").ToVector<float>(); }

  CompiledProgram Compile(std::string_view text, const CompileOptions& options = {}) {
    return executor_->Compile(*ParseProgramText(text), options);
  }

  std::string ErrorOf(CompiledProgram& program, const FeedList& feeds, const FetchList& fetches) {
    return ErrorText([&] { program.Run(feeds, fetches); });
  }

  OpRegistry registry_;
  std::unique_ptr<Executor> executor_;
  const Tensor x_ = Tensor::FromValues<float>({3}, {1, 2, 3});
};

TEST_F(ExecutorTest, RunsOpsInOrderAndUpdatesPersistables) {
  CompiledProgram program = Compile(kTraining);
  EXPECT_EQ(program.Run({{"x", x_}}, {"loss"})[0].Item<float>(), 180);
  EXPECT_THAT(W(), ElementsAre(0, -1, -2));
  EXPECT_EQ(program.Run({{"x", x_}}, {"loss"})[0].Item<float>(), 60);
}

TEST_F(ExecutorTest, MovesWithItsScopeAndWhatItHasCompiled) {
  CompiledProgram program = Compile(kTraining);
  BoundProgram bound = program.Bind({{"x", x_}}, {"loss"});
  const Scope* scope = &executor_->scope();

  Executor moved = std::move(*executor_);
  EXPECT_EQ(&moved.scope(), scope);
  bound.Step();
  EXPECT_EQ(bound.fetch(0).Item<float>(), 180);
  EXPECT_EQ(moved.Compile(*ParseProgramText(kTraining)).Run({{"x", x_}}, {"loss"})[0].Item<float>(),
            60);
  EXPECT_THAT(moved.scope().Get("w").ToVector<float>(), ElementsAre(-1, -3, -5));

  const Program empty;
  for (const auto& use :
       std::vector<std::function<void()>>{[&] { executor_->place(); }, [&] { executor_->scope(); },
                                          [&] { executor_->Run(empty); }}) {
    EXPECT_THAT(ErrorText(use), HasSubstr("the executor was moved"));
  }
  *executor_ = std::move(moved);
  EXPECT_EQ(&executor_->scope(), scope);
  EXPECT_EQ(program.Run({{"x", x_}}, {"loss"})[0].Item<float>(), -60);
}

TEST_F(ExecutorTest, OutlivesAProgramThatWasMoved) {
  Program main = std::move(*ParseProgramText(kTraining));
  CompiledProgram program = executor_->Compile(main);
  const Program other = std::move(main);
  EXPECT_EQ(program.Run({{"x", x_}}, {"loss"})[0].Item<float>(), 180);
  EXPECT_EQ(executor_->Compile(other).Run({{"x", x_}}, {"loss"})[0].Item<float>(), 60);
}

TEST_F(ExecutorTest, TakesAnIntForAFloat) {
  std::string text = kTraining;
  text.replace(text.find("factor = 2.0"), 12, "factor = 2");
  const std::unique_ptr<Program> program = ParseProgramText(text);
  CompiledProgram compiled = executor_->Compile(*program);
  EXPECT_EQ(compiled.Run({{"x", x_}}, {"loss"})[0].Item<float>(), 180);
  // The program is the user's, and stays as it was.
  EXPECT_EQ(PrintProgram(*program), PrintProgram(*ParseProgramText(text)));
}

TEST_F(ExecutorTest, UpdatesParametersOfAMappedFileButNotTheFile) {
  const TempDirectory directory;
  const std::string w_path = directory / "w.safetensors";
  const std::string x_path = directory / "x.safetensors";
  WriteSafetensors(w_path, {{"w", Tensor::FromValues<float>({3}, {1, 1, 1})}});
  WriteSafetensors(x_path, {{"x", x_}});
  const std::string before = BytesOf(w_path);
  const Tensor w = SafetensorsFile(w_path).Map("w");
  executor_->scope().Set("w", w);
  const Tensor x = SafetensorsFile(x_path).Map("x");
  CompiledProgram program = Compile(kTraining);
  EXPECT_EQ(program.Run({{"x", x}}, {"loss"})[0].Item<float>(), 180);
  EXPECT_EQ(program.Run({{"x", x}}, {"loss"})[0].Item<float>(), 60);
  EXPECT_EQ(executor_->scope().Get("w").raw_data(), w.raw_data());
  EXPECT_THAT(W(), ElementsAre(-1, -3, -5));
  EXPECT_EQ(BytesOf(w_path), before);
}

TEST_F(ExecutorTest, FetchesIntermediatesThatAnInPlaceOpWouldOverwrite) {
  CompiledProgram program = Compile(kTraining);
  const auto all = program.Run({{"x", x_}}, {"a", "b", "loss", "c"});
  EXPECT_THAT(all[0].ToVector<float>(), ElementsAre(2, 3, 4));
  EXPECT_THAT(all[1].ToVector<float>(), ElementsAre(4, 6, 8));
  EXPECT_EQ(all[2].Item<float>(), 180);
  EXPECT_THAT(all[3].ToVector<float>(), ElementsAre(40, 60, 80));
}

TEST_F(ExecutorTest, GivesTheSameValuesWithAndWithoutReuse) {
  for (const ReusePolicy policy : kReusePolicies) {
    SetW({1, 1, 1});
    CompiledProgram program = Compile(kTraining, {.memory = {.policy = policy}});
    EXPECT_EQ(program.Run({{"x", x_}}, {"loss"})[0].Item<float>(), 180) << ReusePolicyName(policy);
  }
}

TEST_F(ExecutorTest, ReuseTakesLessThanABufferForEachValue) {
  CompiledProgram program = Compile(kTraining);
  const PlanStatistics shared = program.Bind({{"x", x_}}, {"loss"}).statistics();
  CompiledProgram none = Compile(kTraining, {.memory = {.policy = ReusePolicy::kNone}});
  const PlanStatistics unshared = none.Bind({{"x", x_}}, {"loss"}).statistics();
  EXPECT_LT(shared.planned_bytes, unshared.planned_bytes);
  EXPECT_GE(shared.planned_bytes, shared.max_live_bytes);
  EXPECT_EQ(shared.unshared_bytes, unshared.unshared_bytes);
}

TEST_F(ExecutorTest, VariablesThatAreSkippedShareStorageWithNothing) {
  CompiledProgram all = Compile(kTraining);
  const int64_t planned = all.Bind({{"x", x_}}, {"loss"}).statistics().planned_bytes;
  CompiledProgram skipping = Compile(kTraining, {.memory = {.skip = {"a", "b"}}});
  BoundProgram bound = skipping.Bind({{"x", x_}}, {"loss"});
  EXPECT_GT(bound.statistics().planned_bytes, planned);
  const Plan& plan = bound.plan();
  for (const PlanValue& value : plan.values) {
    const bool is_skipped = value.name == "a" || value.name == "b";
    EXPECT_TRUE(!is_skipped || !value.alias_of) << value.name;
  }
  ExpectError([&] { Compile(kTraining, {.memory = {.skip = {"nobody"}}}); }, ErrorCode::kNotFound,
              "option memory.skip: the program has no variable \"nobody\"");
}

TEST_F(ExecutorTest, FeedsAreNeverWritten) {
  CompiledProgram program = Compile(R"(program { block 0 {
    var "x" float32 [-1]
    var "y" float32 [-1]
    {Out: ["y"]} = tiny_scale(X: ["x"]) {factor = 5.0}
  } })");
  EXPECT_THAT(program.Run({{"x", x_}}, {"y"})[0].ToVector<float>(), ElementsAre(5, 10, 15));
  EXPECT_THAT(x_.ToVector<float>(), ElementsAre(1, 2, 3));
}

TEST_F(ExecutorTest, AVariableWrittenTwiceHasTwoValues) {
  CompiledProgram program = Compile(R"(program { block 0 {
    var "x" float32 [-1]
    var "y" float32 [-1]
    var "first" float32 [-1]
    {Out: ["y"]} = tiny_scale(X: ["x"]) {factor = 2.0}
    {Out: ["first"]} = tiny_copy(X: ["y"])
    {Out: ["y"]} = tiny_add(X: ["y"], Y: ["x"])
  } })");
  const auto values = program.Run({{"x", x_}}, {"y", "first"});
  EXPECT_THAT(values[0].ToVector<float>(), ElementsAre(3, 6, 9));
  EXPECT_THAT(values[1].ToVector<float>(), ElementsAre(2, 4, 6));
}

TEST_F(ExecutorTest, AnOpThatIsNotInPlaceMayStillUpdateAPersistable) {
  CompiledProgram program = Compile(R"(program { block 0 {
    var "w" float32 [3] persistable
    {Out: ["w"]} = tiny_workspace(X: ["w"])
  } })");
  program.Run({}, {});
  EXPECT_THAT(W(), ElementsAre(1, 1, 1));
}

TEST_F(ExecutorTest, ChangesBatchSizesAndFetchSetsWithinABoundedCache) {
  CompiledProgram program = Compile(kTraining, {.plan_cache_capacity = 2});
  SetW({0, 0, 0});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(program.Run({{"x", Tensor::FromValues<float>({3}, {0, 0, 1})}}, {}).size(), 0u);
    program.Run({{"x", x_}}, {"b"});
    program.Run({{"x", x_}}, {"loss", "b"});
    EXPECT_LE(program.cached_plans(), 2u);
  }
}

TEST_F(ExecutorTest, PlansFollowTheScopeWhenItsStorageMoves) {
  CompiledProgram program = Compile(kTraining);
  program.Run({{"x", x_}}, {"loss"});
  BoundProgram bound = program.Bind({{"x", x_}}, {"loss"});
  executor_->scope().Set("w", Tensor::FromValues<float>({3}, {5, 5, 5}));
  try {
    bound.Step();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_STREQ(error.what(),
                 "the scope's storage has moved since Bind (a variable was set, loaded or erased): "
                 "bind again");
  }
  EXPECT_EQ(program.Run({{"x", x_}}, {"loss"})[0].Item<float>(), 420);
}

// The last op reads no feed: only FollowArena binds its kernel again, which the op before prevents.
constexpr const char* kBoundToTheArena = R"(program { block 0 {
  var x float32 [-1]
  var a float32 [-1]
  var b float32 [-1]
  var c float32 [-1]
  {Out: [a]} = tiny_scale(X: [x]) {factor = 2.0}
  {Out: [b]} = tiny_bound(X: [a])
  {Out: [c]} = tiny_bound(X: [b])
} })";

// Makes the next Bind of tiny_bound throw, as if there were no memory for the kernel's tables.
void ThrowOnNextBind() {
  tiny::SetOnBind([is_next = true]() mutable {
    if (std::exchange(is_next, false)) throw std::bad_alloc();
  });
}

TEST_F(ExecutorTest, APlanWhoseKernelsCannotFollowTheArenaIsMadeAgain) {
  CompiledProgram program = Compile(kBoundToTheArena);
  program.Run({{"x", x_}}, {"c"});
  program.Run({{"x", Tensor({1 << 20}, DType::kFloat32)}}, {"c"});  // moves the arena
  ThrowOnNextBind();
  EXPECT_THAT(ErrorOf(program, {{"x", x_}}, {"c"}), HasSubstr("tiny_bound (block 0, op #1"));
  EXPECT_EQ(program.preparation().plans, 2);
  EXPECT_THAT(program.Run({{"x", x_}}, {"c"})[0].ToVector<float>(), ElementsAre(2, 4, 6));
  EXPECT_EQ(program.preparation().plans, 3);
  EXPECT_EQ(program.cached_plans(), 2u);
}

TEST_F(ExecutorTest, ABoundProgramWhoseKernelsCannotFollowTheArenaIsNoLongerCurrent) {
  CompiledProgram program = Compile(kBoundToTheArena);
  BoundProgram bound = program.Bind({{"x", x_}}, {"c"});
  bound.Step();
  program.Run({{"x", Tensor({1 << 20}, DType::kFloat32)}}, {"c"});  // moves the arena
  ThrowOnNextBind();
  EXPECT_THAT(ErrorText(ErrorCode::kResourceExhausted, [&] { bound.Step(); }),
              HasSubstr("tiny_bound (block 0, op #1"));
  EXPECT_FALSE(bound.is_current());
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { bound.Step(); }),
              HasSubstr("bind again"));
  BoundProgram again = program.Bind({{"x", x_}}, {"c"});
  again.Step();
  EXPECT_THAT(again.fetch(0).ToVector<float>(), ElementsAre(2, 4, 6));
}

TEST_F(ExecutorTest, StatisticsAreToldWhateverTheScopeHoldsByNow) {
  CompiledProgram program = Compile(kTraining);
  const BoundProgram bound = program.Bind({{"x", x_}}, {"loss"});
  EXPECT_EQ(bound.statistics().persistable_bytes, 12);
  executor_->scope().Erase("w");
  EXPECT_EQ(bound.statistics().persistable_bytes, 12);
}

TEST_F(ExecutorTest, ARunLetsGoOfItsFeeds) {
  CompiledProgram program = Compile(kTraining);
  program.Run({{"x", x_}}, {"loss"});
  EXPECT_EQ(program.cached_plans(), 1u);
  EXPECT_EQ(x_.buffer().use_count(), 1);
  // So does one that fails.
  CompiledProgram refusing = Compile(R"(program { block 0 {
    var "x" float32 [-1]
    var "y" float32 [-1]
    {Out: ["y"]} = tiny_fail(X: ["x"])
  } })");
  EXPECT_THROW(refusing.Run({{"x", x_}}, {"y"}), Error);
  EXPECT_EQ(refusing.cached_plans(), 1u);
  EXPECT_EQ(x_.buffer().use_count(), 1);
}

TEST_F(ExecutorTest, FetchesOfARunAreTheCallersAlone) {
  CompiledProgram program = Compile(kTraining);
  const auto first = program.Run({{"x", x_}}, {"a", "w"});
  EXPECT_EQ(first[0].buffer().use_count(), 1);
  const auto second = program.Run({{"x", x_}}, {"a", "w"});
  EXPECT_THAT(first[0].ToVector<float>(), ElementsAre(2, 3, 4));
  EXPECT_THAT(second[0].ToVector<float>(), ElementsAre(1, 1, 1));
  EXPECT_THAT(first[1].ToVector<float>(), ElementsAre(0, -1, -2));
  EXPECT_THAT(second[1].ToVector<float>(), ElementsAre(-1, -3, -5));
}

TEST_F(ExecutorTest, BoundStepsReadTheFeedsAsTheyAre) {
  Tensor x = Tensor::FromValues<float>({3}, {0, 0, 0});
  CompiledProgram program = Compile(kTraining);
  BoundProgram bound = program.Bind({{"x", x}}, {"loss"});
  bound.Step();
  EXPECT_EQ(bound.fetch(0).Item<float>(), 60);
  x.data<float>()[0] = 1;
  bound.Step();
  EXPECT_EQ(bound.fetch(0).Item<float>(), 80);
}

TEST_F(ExecutorTest, DropsWhatIsNotFetched) {
  CompiledProgram program = Compile(kTraining);
  EXPECT_EQ(program.Bind({{"x", x_}}, {}).statistics().instructions, 1);
  EXPECT_EQ(program.Bind({{"x", x_}}, {"a"}).statistics().instructions, 2);
}

TEST_F(ExecutorTest, RefreshesADerivedFormOncePerVersionOfTheParameter) {
  CompiledProgram program = Compile(R"(program { block 0 {
    var "y" float32 [3]
    var "w" float32 [3] persistable
    {Out: ["y"]} = tiny_negated(W: ["w"])
  } })");
  BoundProgram bound = program.Bind({}, {"y"});
  const int before = tiny::DerivedRefreshes();
  bound.Step();
  bound.Step();
  EXPECT_EQ(tiny::DerivedRefreshes(), before + 1);
  SetW({2, 3, 4});
  bound.Step();
  EXPECT_EQ(tiny::DerivedRefreshes(), before + 2);
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(-2, -3, -4));
}

// Another name, or another scope, says nothing to the variable whose memory it shares.
TEST_F(ExecutorTest, RefreshesADerivedFormWhenItsMemoryIsWrittenUnderAnotherName) {
  CompiledProgram program = Compile(R"(program { block 0 {
    var "y" float32 [3]
    var "v" float32 [3] persistable
    {Out: ["y"]} = tiny_negated(W: ["v"])
  } })");
  Executor other(Place::Cpu(), nullptr, &registry_);
  executor_->scope().Set("v", executor_->scope().Get("w"));
  other.scope().Set("u", executor_->scope().Get("w"));
  BoundProgram bound = program.Bind({}, {"y"});
  bound.Step();
  const int before = tiny::DerivedRefreshes();
  bound.Step();
  EXPECT_EQ(tiny::DerivedRefreshes(), before);
  SetW({2, 3, 4});
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(-2, -3, -4));
  other.scope().Assign("u", Tensor::FromValues<float>({3}, {5, 6, 7}));
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(-5, -6, -7));
  Compile(kTraining).Run({{"x", x_}}, {});
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(-4, -4, -4));
}

// Nothing would be gained by keeping it.
TEST_F(ExecutorTest, ADerivedFormOfAParameterThatARunWritesIsAWorkspace) {
  CompiledProgram kept = Compile(R"(program { block 0 {
    var "y" float32 [3]
    var "w" float32 [3] persistable
    {Out: ["y"]} = tiny_negated(W: ["w"])
  } })");
  EXPECT_EQ(kept.Bind({}, {"y"}).statistics().derived_bytes, 12);
  CompiledProgram written = Compile(R"(program { block 0 {
    var "y" float32 [3]
    param "w" float32 [3] persistable
    {Out: ["y"]} = tiny_negated(W: ["w"])
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["y"])
  } })");
  BoundProgram bound = written.Bind({}, {"y"});
  EXPECT_EQ(bound.statistics().derived_bytes, 0);
  const int before = tiny::DerivedRefreshes();
  bound.Step();
  bound.Step();
  EXPECT_EQ(tiny::DerivedRefreshes(), before + 2);
}

TEST_F(ExecutorTest, TrainingAdvancesTheStepAndWithItRandomOps) {
  constexpr const char* kRandom = R"(program seed=3 { block 0 {
    var "x" float32 [-1]
    var "r" float32 [-1]
    param "w" float32 [3] persistable
    {Out: ["r"]} = tiny_random(X: ["x"])
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["r"]) {op_role = ROLE}
  } })";
  const auto text = [&](const char* role) {
    std::string program = kRandom;
    return program.replace(program.find("ROLE"), 4, role);
  };
  CompiledProgram training = Compile(text("2"));
  const auto first = training.Run({{"x", x_}}, {"r"})[0].ToVector<float>();
  const auto second = training.Run({{"x", x_}}, {"r"})[0].ToVector<float>();
  EXPECT_NE(first, second);
  CompiledProgram evaluation = Compile(text("0"));
  const auto third = evaluation.Run({{"x", x_}}, {"r"})[0].ToVector<float>();
  EXPECT_EQ(evaluation.Run({{"x", x_}}, {"r"})[0].ToVector<float>(), third);
  executor_->scope().FindMutable(kStepCounterName)->data<int64_t>()[0] = 0;
  // A startup program and its main program count ops from 0, both.
  EXPECT_NE(evaluation.Run({{"x", x_}}, {"r"})[0].ToVector<float>(), first);
  EXPECT_EQ(training.Run({{"x", x_}}, {"r"})[0].ToVector<float>(), first);
}

TEST_F(ExecutorTest, SaysWhatIsWrongWithAFeed) {
  CompiledProgram program = Compile(kTraining);
  EXPECT_THAT(ErrorOf(program, {}, {"loss"}), HasSubstr("is a feed missing?"));
  EXPECT_THAT(ErrorOf(program, {{"x", x_}, {"z", x_}}, {"loss"}),
              HasSubstr("feed \"z\": the program has no such variable"));
  EXPECT_THAT(ErrorOf(program, {{"x", x_}, {"x", x_}}, {"loss"}), HasSubstr("given twice"));
  EXPECT_THAT(ErrorOf(program, {{"w", x_}}, {"loss"}), HasSubstr("persistable"));
  EXPECT_THAT(ErrorOf(program, {{"x", Tensor::FromValues<double>({3}, {1, 2, 3})}}, {"loss"}),
              HasSubstr("dtype float64 given, float32 expected"));
  EXPECT_THAT(ErrorOf(program, {{"x", Tensor::FromValues<float>({1, 3}, {1, 2, 3})}}, {"loss"}),
              HasSubstr("shape [1, 3] given, [-1] expected"));
  EXPECT_THAT(ErrorOf(program, {{"x", Tensor()}}, {"loss"}), HasSubstr("no data"));
}

TEST_F(ExecutorTest, SaysWhichFetchOrParameterIsUnknown) {
  CompiledProgram program = Compile(kTraining);
  EXPECT_THAT(ErrorOf(program, {{"x", x_}}, {"nothing"}),
              HasSubstr("fetch \"nothing\": the program has no such variable"));
  executor_->scope().Erase("w");
  EXPECT_THAT(ErrorOf(program, {{"x", x_}}, {"loss"}), HasSubstr("run the startup program"));
}

// A byte of a tensor of bools, whatever it is.
uint8_t& ByteOf(Tensor& bools, int64_t i) { return static_cast<uint8_t*>(bools.raw_data())[i]; }

// A loop would otherwise pick what it hasn't counted. A step reads its feeds as they are then.
TEST_F(ExecutorTest, RefusesBoolsThatAreNeitherTrueNorFalse) {
  CompiledProgram program = Compile(R"(program { block 0 {
    var "m" bool [-1]
    var "x" float32 [-1]
    var "y" float32 [-1]
    {Out: ["y"]} = tiny_copy(X: ["x"])
  } })");
  Tensor m = Tensor::FromValues<bool>({3}, {true, false, true});
  BoundProgram bound = program.Bind({{"m", m}, {"x", x_}}, {"m", "y"});
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<bool>(), ElementsAre(true, false, true));
  ByteOf(m, 1) = 255;
  constexpr const char* kMessage = "feed \"m\": element 1 is a bool of value 255, expected 0 or 1";
  EXPECT_EQ(ErrorText([&] { bound.Step(); }), kMessage);
  EXPECT_EQ(ErrorOf(program, {{"m", m}, {"x", x_}}, {"y"}), kMessage);
}

// What a kernel has counted or checked is still so when it reads it again.
TEST_F(ExecutorTest, ReadsAFeedThatDecidesAboutMemoryOnlyOnce) {
  CompiledProgram program = Compile(R"(program { block 0 {
    var "x" float32 [-1]
    var "ids" int64 [-1]
    var "m" bool [-1]
    var "checked" float32 [-1]
    var "plain" float32 [-1]
    var "first" float32 [-1]
    var "y" float32 [-1]
    var "z" float32 [-1]
    {Out: ["first"]} = tiny_meanwhile(X: ["x"])
    {Out: ["y"]} = tiny_check(X: ["checked"])
    {Out: ["z"]} = tiny_copy(X: ["plain"])
  } })");
  Tensor ids = Tensor::FromValues<int64_t>({2}, {3, 4});
  Tensor m = Tensor::FromValues<bool>({2}, {true, false});
  Tensor checked = Tensor::FromValues<float>({2}, {5, 6});
  Tensor plain = Tensor::FromValues<float>({2}, {7, 8});
  BoundProgram bound =
      program.Bind({{"x", x_}, {"ids", ids}, {"m", m}, {"checked", checked}, {"plain", plain}},
                   {"first", "ids", "m", "y", "z"});
  tiny::SetMeanwhile([&] {
    ids.data<int64_t>()[1] = -1;
    ByteOf(m, 1) = 2;
    checked.data<float>()[1] = -1;
    plain.data<float>()[1] = -1;
  });
  bound.Step();
  EXPECT_THAT(bound.fetch(1).ToVector<int64_t>(), ElementsAre(3, 4));
  EXPECT_THAT(bound.fetch(2).ToVector<bool>(), ElementsAre(true, false));
  EXPECT_THAT(bound.fetch(3).ToVector<float>(), ElementsAre(5, 6));
  // This one decides about nothing, so it is read in place.
  EXPECT_THAT(bound.fetch(4).ToVector<float>(), ElementsAre(7, -1));
}

TEST_F(ExecutorTest, HasFetchesAfterAStepThatEndedWell) {
  CompiledProgram program = Compile(R"(program { block 0 {
    var "x" float32 [-1]
    var "y" float32 [-1]
    {Out: ["y"]} = tiny_check(X: ["x"])
  } })");
  Tensor x = Tensor::FromValues<float>({3}, {1, 2, 3});
  BoundProgram bound = program.Bind({{"x", x}}, {"y"});
  const auto refused = [&] {
    return ErrorText(ErrorCode::kFailedPrecondition, [&] { bound.fetch(0); });
  };
  EXPECT_THAT(refused(), HasSubstr("fetch \"y\" before the first step"));
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(1, 2, 3));
  x.data<float>()[1] = -1;
  EXPECT_THROW(bound.Step(), Error);
  refused();
  ErrorText(ErrorCode::kOutOfRange, [&] { bound.fetch(1); });
}

TEST_F(ExecutorTest, ErrorsOfKernelsNameTheOp) {
  CompiledProgram program = Compile(R"(program { block 0 {
    var "x" float32 [-1]
    var "y" float32 [-1]
    {Out: ["y"]} = tiny_fail(X: ["x"]) {op_namescope = "head"}
  } })");
  const std::string message = ErrorOf(program, {{"x", x_}}, {"y"});
  EXPECT_THAT(message, HasSubstr("tiny_fail (block 0, op #0 \"head\")"));
  EXPECT_THAT(message, HasSubstr("label 12 is outside [0, 10)"));
}

TEST_F(ExecutorTest, CompileTellsAllThatIsWrongWithAProgram) {
  try {
    Compile(R"(program { block 0 {
      var "x" float32 [-1]
      var "y" float32 [-1]
      {Out: ["y"]} = tiny_scal(X: ["x"])
      {Out: ["y"]} = tiny_copy(X: ["q"])
    } })");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "tiny_scal (block 0, op #0): unknown op \"tiny_scal\"; did you mean "
                 "\"tiny_scale\"?\n"
                 "tiny_copy (block 0, op #1): input \"q\" has no variable");
  }
}

TEST_F(ExecutorTest, TakesAForcedKernelThatExists) {
  EXPECT_NO_THROW(Compile(kTraining, {.kernels = {{"tiny_add", "plain"}}}));
  EXPECT_NO_THROW(Compile(kTraining, {.kernels = {{"tiny_add", "widened"}}}));
}

TEST_F(ExecutorTest, TimedStepsRefuseStorageThatMoved) {
  CompiledProgram program = Compile(kTraining);
  BoundProgram bound = program.Bind({{"x", x_}}, {"loss"});
  executor_->scope().Set("w", Tensor::FromValues<float>({3}, {5, 5, 5}));
  try {
    bound.TimedStep();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  }
}

TEST_F(ExecutorTest, RefusesFeedsOfAnotherPlace) {
  // Never touched: the place is checked before anything reads the memory.
  float elsewhere = 0;
  Tensor x = Tensor::Borrow(&elsewhere, {1}, DType::kFloat32, Place::Cuda(0));
  CompiledProgram program = Compile(kTraining);
  EXPECT_THAT(ErrorOf(program, {{"x", x}}, {"loss"}),
              HasSubstr("the tensor is on cuda:0, expected one on the CPU"));
}

// An evaluation with averaged parameters, say: a training would go on from the averages.
TEST_F(ExecutorTest, RefusesWhatReplacedValuesWouldLose) {
  const auto code_of = [&](CompiledProgram& program) {
    try {
      program.Run({{"x", x_}}, {});
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kIo;
  };
  CompiledProgram training = Compile(kTraining);
  CompiledProgram writing = Compile(R"(program {
    block 0 {
      var "x" float32 [-1]
      param "w" float32 [3] persistable
      {Out: ["w"]} = tiny_copy(X: ["x"])
    }
  })");
  CompiledProgram reading = Compile(R"(program {
    block 0 {
      var "x" float32 [-1]
      var "a" float32 [-1]
      param "w" float32 [3] persistable
      {Out: ["a"]} = tiny_add(X: ["x"], Y: ["w"])
    }
  })");
  BoundProgram bound = reading.Bind({{"x", x_}}, {"a"});
  BoundProgram bound_training = training.Bind({{"x", x_}}, {});
  {
    const ReplacedValues replaced(&executor_->scope(), {"w"}, [&] { SetW({5, 5, 5}); });
    EXPECT_EQ(code_of(training), ErrorCode::kFailedPrecondition);
    EXPECT_THROW(bound_training.Step(), Error);
    EXPECT_EQ(code_of(writing), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(W(), ElementsAre(5, 5, 5));
    EXPECT_EQ(executor_->scope().Get(kStepCounterName).Item<int64_t>(), 0);
    bound.Step();
    EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(6, 7, 8));
  }
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(2, 3, 4));
  bound_training.Step();
  EXPECT_THAT(W(), ElementsAre(0, -1, -2));
}

// Runs `work(i)` in each of so many threads.
void InThreads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

constexpr const char* kInference = R"(program {
  block 0 {
    var "x" float32 [-1]
    var "y" float32 [-1]
    var "v" float32 [-1]
    var "z" float32 [-1]
    var "w" float32 [3] persistable
    {Out: ["y"]} = tiny_add(X: ["x"], Y: ["w"])
    {Out: ["v"]} = tiny_negated(W: ["w"])
    {Out: ["z"]} = tiny_add(X: ["y"], Y: ["v"])
  }
})";

// How many runs are at tiny_meanwhile at once, at most. Each waits there for another one.
class Meeting {
 public:
  explicit Meeting(std::chrono::milliseconds patience) {
    tiny::SetMeanwhile([this, patience] {
      std::unique_lock<std::mutex> lock(mutex_);
      most_ = std::max(most_, ++present_);
      changed_.notify_all();
      changed_.wait_for(lock, patience, [this] { return most_ > 1; });
      --present_;
    });
  }
  int most() const { return most_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int present_ = 0;
  int most_ = 0;
};

constexpr const char* kMeeting = R"(program {
  block 0 {
    var "x" float32 [-1]
    var "y" float32 [-1]
    var "z" float32 [-1]
    var "w" float32 [3] persistable
    {Out: ["y"]} = tiny_meanwhile(X: ["x"])
    {Out: ["z"]} = tiny_add(X: ["y"], Y: ["w"])
  }
})";

TEST_F(ExecutorTest, ThreadsThatShareAProgramTakeTurns) {
  CompiledProgram program = Compile(kMeeting);
  CompiledProgram another = Compile(kMeeting);
  const Meeting meeting(std::chrono::milliseconds(20));
  InThreads(4, [&](int i) {
    CompiledProgram& mine = i < 3 ? program : another;
    if (i > 0) {
      EXPECT_THAT(mine.Run({{"x", x_}}, {"z"})[0].ToVector<float>(), ElementsAre(2, 3, 4));
      return;
    }
    BoundProgram bound = mine.Bind({{"x", x_}}, {"z"});
    bound.Step();
    EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(2, 3, 4));
  });
  EXPECT_EQ(meeting.most(), 1);
}

TEST_F(ExecutorTest, ClonesRunAtTheSameTime) {
  CompiledProgram program = Compile(kMeeting);
  CompiledProgram clone = program.Clone();
  const Meeting meeting(std::chrono::seconds(60));
  InThreads(2, [&](int i) {
    CompiledProgram& mine = i == 0 ? program : clone;
    EXPECT_THAT(mine.Run({{"x", x_}}, {"z"})[0].ToVector<float>(), ElementsAre(2, 3, 4));
  });
  EXPECT_EQ(meeting.most(), 2);
}

TEST_F(ExecutorTest, ThreadsKeepABoundedCacheOfPlansTogether) {
  CompiledProgram step = Compile(kTraining, {.plan_cache_capacity = 2});
  SetW({0, 0, 0});
  InThreads(4, [&](int i) {
    const Tensor x = Tensor::FromValues<float>({3}, {1, 1, 1});
    // Fetches of their own: the threads evict each other's plans.
    const FetchList fetches = i % 2 == 0 ? FetchList{"b"} : FetchList{"c", "b"};
    for (int run = 0; run < 100; ++run) {
      EXPECT_EQ(step.Run({{"x", x}}, fetches).size(), fetches.size());
    }
  });
  EXPECT_THAT(W(), ElementsAre(-400, -400, -400));
}

TEST_F(ExecutorTest, ClonesRunInSeveralThreadsOnTheSameWeights) {
  CompiledProgram program = Compile(kInference);
  InThreads(4, [&](int i) {
    CompiledProgram mine = program.Clone();
    const auto x = static_cast<float>(i);
    const Tensor fed = Tensor::FromValues<float>({3}, {x, x, x});
    BoundProgram bound = mine.Bind({{"x", fed}}, {"y", "z"});
    for (int run = 0; run < 100; ++run) {
      bound.Step();
      EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(x + 1, x + 1, x + 1));
      EXPECT_THAT(mine.Run({{"x", fed}}, {"z"})[0].ToVector<float>(), ElementsAre(x, x, x));
    }
  });
  CompiledProgram clone = program.Clone();
  BoundProgram bound = clone.Bind({{"x", x_}}, {"y", "z"});
  bound.Step();
  // In its place, so that the clone has it, too, and the form that it has made of it is made anew.
  SetW({5, 5, 5});
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(6, 7, 8));
  EXPECT_THAT(bound.fetch(1).ToVector<float>(), ElementsAre(1, 2, 3));
  // Elsewhere: the clone keeps what it has, whatever becomes of the executor.
  executor_->scope().Set("w", Tensor::FromValues<float>({3}, {9, 9, 9}));
  executor_.reset();
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(6, 7, 8));
}

// A kernel checks the elements of such a variable, and then follows them.
TEST_F(ExecutorTest, ClonesHaveCopiesOfWhatDecidesAboutMemory) {
  CompiledProgram program = Compile(R"(program { block 0 {
    var "y" float32 [-1]
    var "z" float32 [-1]
    var "w" float32 [3] persistable
    var "v" float32 [3] persistable
    {Out: ["y"]} = tiny_check(X: ["w"])
    {Out: ["z"]} = tiny_add(X: ["y"], Y: ["v"])
  } })");
  executor_->scope().Set("v", Tensor::FromValues<float>({3}, {0, 0, 0}));
  CompiledProgram clone = program.Clone();
  SetW({-1, -1, -1});
  executor_->scope().Assign("v", Tensor::FromValues<float>({3}, {5, 6, 7}));
  EXPECT_THAT(ErrorText([&] { program.Run({}, {"z"}); }), HasSubstr("tiny_check"));
  EXPECT_THAT(clone.Run({}, {"z"})[0].ToVector<float>(), ElementsAre(6, 7, 8));
}

// The form of w is made while w is written, which leaves no trace once the run has ended.
TEST_F(ExecutorTest, ClonesBesideAProgramThatTrains) {
  CompiledProgram program = Compile(kInference);
  CompiledProgram clone = program.Clone();
  BoundProgram bound = clone.Bind({{"x", x_}}, {"z"});
  constexpr const char* kOps[] = {R"({Out: ["y"]} = tiny_meanwhile(X: ["x"]))",
                                  R"({ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["x"]))"};
  const auto in_order = [&](int first) {
    return Compile(StrCat(R"(program { block 0 {
                     var "x" float32 [-1]
                     var "y" float32 [-1]
                     param "w" float32 [3] persistable )",
                          kOps[first], kOps[1 - first],
                          R"({Out: ["y"]} = tiny_check(X: ["x"])} })"));
  };
  CompiledProgram before = in_order(0);
  CompiledProgram after = in_order(1);
  tiny::SetMeanwhile([&] { bound.Step(); });
  const auto run = [&](CompiledProgram& training, const std::vector<float>& x) {
    training.Run({{"x", Tensor::FromValues<float>({3}, x)}}, {"y"});
  };
  run(before, {1, 2, 3});
  EXPECT_THAT(W(), ElementsAre(0, -1, -2));
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(1, 2, 3));
  // The run fails, and w is what it was.
  EXPECT_THAT(ErrorText([&] { run(after, {1, 2, -3}); }), HasSubstr("tiny_check"));
  EXPECT_THAT(W(), ElementsAre(0, -1, -2));
  bound.Step();
  EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(1, 2, 3));
  tiny::SetMeanwhile(nullptr);
}

TEST_F(ExecutorTest, ClonesOfAProgramThatChangesVariablesAreRefused) {
  CompiledProgram training = Compile(kTraining);
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { training.Clone(); }),
              HasSubstr("op \"tiny_sgd\" writes \"w\" in the scope"));
}

TEST_F(ExecutorTest, TimesEveryInstruction) {
  CompiledProgram program = Compile(kTraining);
  const auto times = program.Bind({{"x", x_}}, {"loss"}).TimedStep();
  ASSERT_EQ(times.size(), 5u);
  EXPECT_EQ(times[0].type, "tiny_add");
  EXPECT_GE(times[0].seconds, 0);
}

}  // namespace
}  // namespace skiff
