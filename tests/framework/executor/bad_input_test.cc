// What users get wrong: each mistake is an Error that says where, what was found and what was
// expected, and leaves the executor, the scope and the compiled program as they were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "memory/allocator.h"
#include "memory/places.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kPlain = R"(program { block 0 {
  var "x" float32 [-1, 2]
  var "n" int64 [-1]
  var "r" float32 [-1] lod=1
  var "y" float32 [-1, 2]
  var "s" float32 [1]
  var "idle" float32 [1]
  param "w" float32 [2, 2] persistable
  {Out: ["y"]} = tiny_add(X: ["x"], Y: ["w"]) {op_namescope = "net"}
  {Out: ["s"]} = tiny_sum(X: ["y"])
} })";

// A training step with an op in the middle that refuses negative elements of x: after an update of
// a statistic, before a counter and the update of w.
constexpr const char* kTraining = R"(program seed=9 { block 0 {
  var "x" float32 [3]
  var "seen" float32 [3] persistable
  var "count" float32 [1] persistable
  param "w" float32 [3] persistable
  var "noise" float32 [3]
  var "a" float32 [3]
  var "checked" float32 [3]
  var "one" float32 [1]
  var "loss" float32 [1]
  var "g" float32 [3]
  {Out: ["seen"]} = tiny_add(X: ["seen"], Y: ["x"])
  {Out: ["noise"]} = tiny_random(X: ["x"])
  {Out: ["a"]} = tiny_add(X: ["noise"], Y: ["w"])
  {Out: ["checked"]} = tiny_check(X: ["x"])
  {Out: ["loss"]} = tiny_sum(X: ["a"])
  {Out: ["one"]} = tiny_fill() {shape = longs [1], op_role = 16}
  {Out: ["count"]} = tiny_add(X: ["count"], Y: ["one"]) {op_role = 16}
  {Out: ["g"]} = tiny_copy(X: ["checked"]) {op_role = 1}
  {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["g"]) {op_role = 2}
} })";

Tensor Row(const std::vector<float>& values) {
  return Tensor::FromValues<float>({static_cast<int64_t>(values.size())}, values);
}

class BadInput : public ::testing::Test {
 protected:
  BadInput() { tiny::RegisterTinyOps(registry_); }

  std::unique_ptr<Executor> MakeExecutor() {
    auto executor = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
    executor->scope().Set("w", Tensor::FromValues<float>({2, 2}, {1, 1, 1, 1}));
    return executor;
  }
  // With what kTraining keeps.
  std::unique_ptr<Executor> MakeTrainingExecutor() {
    auto executor = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
    executor->scope().Set("seen", Row({0, 0, 0}));
    executor->scope().Set("count", Row({0}));
    executor->scope().Set("w", Row({1, 2, 3}));
    return executor;
  }

  static void ExpectError(const std::function<void()>& action, ErrorCode code,
                          const std::string& message) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(ErrorCodeName(error.code()), ErrorCodeName(code)) << error.what();
      EXPECT_EQ(error.what(), message);
      return;
    }
    ADD_FAILURE() << "no error: " << message;
  }

  OpRegistry registry_;
  const Tensor x_ = Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4});
};

TEST_F(BadInput, OfFeedsIsToldByNameFoundAndExpected) {
  const auto executor = MakeExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(kPlain));
  Tensor ragged = x_;
  ragged.set_lod({{0, 1, 2}});
  const Tensor doubles = Tensor::FromValues<double>({2, 2}, {1, 2, 3, 4});
  const struct {
    FeedList feeds;
    ErrorCode code;
    const char* message;
  } cases[] = {
      {{},
       ErrorCode::kFailedPrecondition,
       "tiny_add (block 0, op #0 \"net\"): variable \"x\" is read before anything writes it; is a "
       "feed missing?"},
      {{{"X", x_}}, ErrorCode::kNotFound, "feed \"X\": the program has no such variable"},
      {{{"x", x_}, {"x", x_}}, ErrorCode::kInvalidArgument, "feed \"x\" is given twice"},
      {{{"x", x_}, {"w", x_}},
       ErrorCode::kInvalidArgument,
       "feed \"w\": a persistable variable isn't fed; assign it in the scope"},
      {{{"x", doubles}},
       ErrorCode::kInvalidArgument,
       "feed \"x\": dtype float64 given, float32 expected"},
      {{{"x", x_.Reshaped({4})}},
       ErrorCode::kInvalidArgument,
       "feed \"x\": shape [4] given, [-1, 2] expected"},
      {{{"x", x_.Reshaped({1, 4})}},
       ErrorCode::kInvalidArgument,
       "feed \"x\": shape [1, 4] given, [-1, 2] expected"},
      {{{"x", ragged}},
       ErrorCode::kInvalidArgument,
       "feed \"x\": LoD of 1 levels given, 0 expected"},
      {{{"x", x_}, {"r", Row({1, 2})}},
       ErrorCode::kInvalidArgument,
       "feed \"r\": LoD of 0 levels given, 1 expected"},
      {{{"x", Tensor()}}, ErrorCode::kInvalidArgument, "feed \"x\": the tensor has no data"},
      {{{"x", x_}, {"s", Row({1})}},
       ErrorCode::kInvalidArgument,
       "tiny_sum (block 0, op #1): feed \"s\": the op computes this variable before anything reads "
       "the feed"},
  };
  for (const auto& [feeds, code, message] : cases) {
    ExpectError([&] { program.Run(feeds, {"s"}); }, code, message);
    ExpectError([&] { program.Bind(feeds, {"s"}); }, code, message);
    // Nothing of it sticks.
    EXPECT_EQ(program.Run({{"x", x_}}, {"s"})[0].Item<float>(), 14);
  }
  EXPECT_EQ(program.cached_plans(), 1u);
}

TEST_F(BadInput, OfFeedOpsIsAMissingFeed) {
  const auto executor = MakeExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "feed" feed_minibatch float32 [] persistable
    var "x" float32 [-1]
    var "y" float32 [-1]
    {Out: ["x"]} = feed(X: ["feed"]) {col = 0}
    {Out: ["y"]} = tiny_copy(X: ["x"])
  } })"));
  ExpectError([&] { program.Run({}, {"y"}); }, ErrorCode::kInvalidArgument,
              "feed (block 0, op #0): feed \"x\" is missing");
  EXPECT_THAT(program.Run({{"x", Row({7})}}, {"y"})[0].ToVector<float>(), ElementsAre(7));
}

TEST_F(BadInput, IsNoFeedThatAnOpUpdates) {
  const auto executor = MakeExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "x" float32 [-1]
    {Out: ["x"]} = tiny_scale(X: ["x"]) {factor = 3.0}
  } })"));
  const Tensor fed = Row({7});
  EXPECT_THAT(program.Run({{"x", fed}}, {"x"})[0].ToVector<float>(), ElementsAre(21));
  EXPECT_THAT(fed.ToVector<float>(), ElementsAre(7));
}

TEST_F(BadInput, IsNoEmptyBatch) {
  const auto executor = MakeExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "x" float32 [-1, 2]
    var "y" float32 [-1, 2]
    var "s" float32 [1]
    {Out: ["y"]} = tiny_scale(X: ["x"]) {factor = 3.0}
    {Out: ["s"]} = tiny_sum(X: ["y"])
  } })"));
  const auto values = program.Run({{"x", Tensor({0, 2}, DType::kFloat32)}}, {"y", "s"});
  EXPECT_EQ(values[0].shape(), (Shape{0, 2}));
  EXPECT_EQ(values[1].Item<float>(), 0);
}

TEST_F(BadInput, OfFetchesIsToldByName) {
  const auto executor = MakeExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(kPlain));
  ExpectError(
      [&] {
        program.Run({{"x", x_}}, {"s", "S"});
      },
      ErrorCode::kNotFound, "fetch \"S\": the program has no such variable");
  ExpectError(
      [&] {
        program.Run({{"x", x_}}, {""});
      },
      ErrorCode::kNotFound, "fetch \"\": the program has no such variable");
  ExpectError(
      [&] {
        program.Run({{"x", x_}}, {"idle"});
      },
      ErrorCode::kNotFound, "fetch \"idle\": nothing writes this variable");
  BoundProgram bound = program.Bind({{"x", x_}}, {"s"});
  bound.Step();
  ExpectError([&] { bound.fetch(1); }, ErrorCode::kOutOfRange, "fetch 1 of 1");
}

TEST_F(BadInput, IsNoFetchTwiceNorOfAFeedOrAPersistable) {
  const auto executor = MakeExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(kPlain));
  const auto values = program.Run({{"x", x_}}, {"s", "w", "s", "x"});
  EXPECT_EQ(values[0].Item<float>(), 14);
  EXPECT_THAT(values[1].ToVector<float>(), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(values[2].Item<float>(), 14);
  EXPECT_THAT(values[3].ToVector<float>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(BadInput, OfTheScopeIsToldByNameFoundAndExpected) {
  const auto executor = MakeExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(kPlain));
  Scope& scope = executor->scope();
  const std::string where = "tiny_add (block 0, op #0 \"net\"): variable \"w\"";
  const auto run = [&] { program.Run({{"x", x_}}, {"s"}); };
  scope.Erase("w");
  ExpectError(run, ErrorCode::kFailedPrecondition,
              where + " is not initialized: run the startup program or load parameters first");
  scope.Set("w", Row({1, 2, 3, 4}));
  ExpectError(run, ErrorCode::kInvalidArgument,
              where + ": the scope holds float32 [4], the program declares float32 [2, 2]");
  scope.Set("w", Tensor::FromValues<double>({2, 2}, {1, 2, 3, 4}));
  ExpectError(run, ErrorCode::kInvalidArgument,
              where + ": the scope holds float64 [2, 2], the program declares float32 [2, 2]");
  scope.Set("w", Tensor());
  ExpectError(run, ErrorCode::kFailedPrecondition,
              where + " in the scope has no data, expected a tensor with data");
  scope.Set("w", Tensor({2, 2}, DType::kFloat32, Place::Cpu(), Layout::SelectedRows(2)));
  ExpectError(
      run, ErrorCode::kFailedPrecondition,
      where + " in the scope has the layout selected_rows(height 2), expected the plain layout");
  float elsewhere = 0;
  scope.Set("w", Tensor::Borrow(&elsewhere, {2, 2}, DType::kFloat32, Place::Cuda(999)));
  // It would follow the program, if the machine had the device.
  try {
    run();
    ADD_FAILURE() << "w was moved from a device that isn't there";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("variable \"w\": move to cpu: "));
  }
  scope.Set("w", x_);
  EXPECT_EQ(program.Run({{"x", x_}}, {"s"})[0].Item<float>(), 20);
  const std::string counter = "the scope must hold the step counter \"@SKIFF_STEP@\" as int64 [1]";
  scope.Set(kStepCounterName, Row({0}));
  ExpectError(run, ErrorCode::kFailedPrecondition, counter);
  scope.Erase(kStepCounterName);
  ExpectError(run, ErrorCode::kFailedPrecondition, counter);
}

TEST_F(BadInput, AreVariablesOnTheSameMemoryOfWhichOneIsWritten) {
  const auto executor = MakeTrainingExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(kTraining));
  Scope& scope = executor->scope();
  const auto run = [&] { program.Run({{"x", Row({1, 2, 3})}}, {"loss"}); };
  scope.Set("seen", scope.Get("w"));
  const std::string expected =
      "variables \"seen\" and \"w\" share memory in the scope, and the program writes \"seen\": "
      "give each a tensor of its own";
  ExpectError(run, ErrorCode::kFailedPrecondition, expected);
  const auto buffer = std::make_shared<Buffer>(AllocatorOf(Place::Cpu()), 24, AllocationOptions{});
  scope.Set("seen", Tensor({3}, DType::kFloat32, buffer, 0));
  scope.Set("w", Tensor({3}, DType::kFloat32, buffer, 8));
  ExpectError(run, ErrorCode::kFailedPrecondition, expected);
  // Beside each other in one buffer, or read only.
  scope.Set("w", Tensor({3}, DType::kFloat32, buffer, 12));
  run();
  CompiledProgram reads = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "a" float32 [3] persistable
    var "b" float32 [3] persistable
    var "sum" float32 [3]
    {Out: ["sum"]} = tiny_add(X: ["a"], Y: ["b"])
  } })"));
  scope.Set("a", Row({1, 2, 3}));
  scope.Set("b", scope.Get("a"));
  EXPECT_THAT(reads.Run({}, {"sum"})[0].ToVector<float>(), ElementsAre(2, 4, 6));
}

TEST_F(BadInput, OfOptionsIsRefusedByCompile) {
  const auto executor = MakeExecutor();
  const auto program = ParseProgramText(kPlain);
  const auto compile = [&](const CompileOptions& options) {
    return [&, options] { executor->Compile(*program, options); };
  };
  ExpectError(compile({.data_parallel = {.bucket_bytes = -1}}), ErrorCode::kInvalidArgument,
              "option data_parallel.bucket_bytes = -1: expected no negative number");
  ExpectError(compile({.plan_cache_capacity = 0}), ErrorCode::kInvalidArgument,
              "option plan_cache_capacity = 0: expected at least 1");
  ExpectError(compile({.kernels = {{"tiny_add", "plian"}}}), ErrorCode::kNotFound,
              "option kernels: op \"tiny_add\" has no kernel \"plian\"; there are: plain, widened");
  ExpectError(compile({.kernels = {{"tiny_ad", "plain"}}}), ErrorCode::kNotFound,
              "unknown op \"tiny_ad\"; did you mean \"tiny_add\" or \"tiny_sgd\"?");
  try {
    compile({.passes = {.skip = {"layuot"}}})();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), StartsWith("there is no pass \"layuot\" to skip; there are: "));
  }
  ExpectError(
      [] {
        Executor nowhere(Place{PlaceKind::kCpu, 1});
      },
      ErrorCode::kInvalidArgument, "there is no place cpu:1");
}

// An op made at net.cc:12, alone in its program but for two copies in front of it.
class BadOp : public BadInput {
 protected:
  BadOp() {
    Block* root = program_.root();
    root->CreateVar({.name = "x", .dims = {-1, 2}});
    root->CreateVar({.name = "i", .dtype = DType::kInt64, .dims = {-1, 2}});
    root->CreateVar({.name = "y", .dims = {-1, 2}});
    for (const char* copy : {"first", "second"}) {
      root->CreateVar({.name = copy, .dims = {-1, 2}});
      Op op("tiny_copy");
      op.SetInput("X", {"x"}).SetOutput("Out", {copy});
      root->AppendOp(op);
    }
  }

  void ExpectRefused(Op op, ErrorCode code, const std::string& message) {
    const std::string type = op.type;
    op.site = {"net.cc", 12};
    op.SetAttr("op_namescope", std::string("head"));
    program_.root()->AppendOp(std::move(op));
    const auto executor = MakeExecutor();
    const Tensor i = Tensor::FromValues<int64_t>({1, 2}, {1, 2});
    ExpectError(
        [&] {
          executor->Run(program_, {{"x", x_}, {"i", i}}, {"y"});
        },
        code, type + " (block 0, op #2 \"head\", net.cc:12): " + message);
    program_.root()->RemoveOps(2, 3);
  }

  Op OpOf(const std::string& type) {
    Op op(type);
    op.SetInput("X", {"x"}).SetOutput("Out", {"y"});
    return op;
  }

  Program program_;
};

TEST_F(BadOp, IsToldByTypeBlockPositionAndPlaceOfCreation) {
  ExpectRefused(OpOf("tiny_coppy"), ErrorCode::kInvalidArgument,
                "unknown op \"tiny_coppy\"; did you mean \"tiny_copy\"?");
  ExpectRefused(OpOf("no_such_op"), ErrorCode::kInvalidArgument, "unknown op \"no_such_op\"");
  ExpectRefused(OpOf("tiny_add"), ErrorCode::kInvalidArgument,
                "tiny_add: input slot \"Y\" is missing");
  ExpectRefused(OpOf("tiny_copy").SetInput("Z", {"x"}), ErrorCode::kInvalidArgument,
                "tiny_copy: there is no input slot \"Z\"");
  ExpectRefused(OpOf("tiny_copy").SetInput("X", {"x", "x"}), ErrorCode::kInvalidArgument,
                "tiny_copy: input slot \"X\" takes one variable, found 2");
  ExpectRefused(OpOf("tiny_copy").SetInput("X", {"q"}), ErrorCode::kInvalidArgument,
                "input \"q\" has no variable");
  ExpectRefused(OpOf("tiny_scale").SetAttr("factor", std::string("two")),
                ErrorCode::kInvalidArgument,
                "tiny_scale: attribute \"factor\" is of type string, expected float");
  ExpectRefused(OpOf("tiny_fill").SetInput("X", {}), ErrorCode::kInvalidArgument,
                "tiny_fill: attribute \"shape\" is not set and has no default");
  ExpectRefused(OpOf("tiny_copy").SetInput("X", {"i"}), ErrorCode::kUnimplemented,
                "tiny_copy: no kernel for cpu, int64 and these shapes and layouts; there are: "
                "plain (cpu, float32)");
  ExpectRefused(OpOf("tiny_fail"), ErrorCode::kInvalidArgument, "label 12 is outside [0, 10)");
}

TEST_F(BadOp, IsToldEvenWhereItsMarksAreOfTheWrongType) {
  program_.root()->AppendOp(OpOf("tiny_coppy").SetAttr("op_namescope", 1));
  const auto executor = MakeExecutor();
  ExpectError(
      [&] {
        executor->Run(program_, {{"x", x_}}, {"y"});
      },
      ErrorCode::kInvalidArgument,
      "tiny_coppy (block 0, op #2): attribute \"op_namescope\" is of type int, expected string\n"
      "tiny_coppy (block 0, op #2): unknown op \"tiny_coppy\"; did you mean \"tiny_copy\"?");
}

TEST_F(BadOp, MayMakeAnImpossibleShape) {
  const auto fill = [this](const std::vector<int64_t>& dims) {
    Op op("tiny_fill");
    op.SetOutput("Out", {"y"}).SetAttr("shape", dims);
    return op;
  };
  ExpectRefused(fill({2, -3}), ErrorCode::kInvalidArgument,
                "output \"y\" would have the shape [2, -3]: expected extents of at least 0");
  ExpectRefused(fill({int64_t{1} << 40, int64_t{1} << 40}), ErrorCode::kOutOfRange,
                "tiny_fill: output \"Out\", variable \"y\": shape [1099511627776, 1099511627776] "
                "has more than 281474976710656 elements, a dim of 0 counted as 1");
  ExpectRefused(fill({int64_t{1} << 61, 0}), ErrorCode::kOutOfRange,
                "tiny_fill: output \"Out\", variable \"y\": shape [2305843009213693952, 0] has "
                "more than 281474976710656 elements, a dim of 0 counted as 1");
  ExpectRefused(fill(std::vector<int64_t>(10, 1)), ErrorCode::kInvalidArgument,
                "shape [1, 1, 1, 1, 1, 1, 1, 1, 1, 1] has rank 10, more than 9");
}

TEST_F(BadOp, MayWriteAPersistableWhoseShapeOnlyItsDataTells) {
  OpDef def = registry_.Get("tiny_copy");
  def.type = "tiny_positives";
  def.infer = [](OpContext& context) { context.SetOutput("Out", {-1}, DType::kFloat32); };
  def.data_dependent_shape = true;
  registry_.Add(def);
  program_.root()->CreateVar({.name = "kept", .dims = {-1}, .persistable = true});
  ExpectRefused(OpOf("tiny_positives").SetOutput("Out", {"kept"}), ErrorCode::kUnimplemented,
                "the shape [-1] of the persistable output \"kept\" depends on data: expected a "
                "known shape");
}

TEST_F(BadOp, MayAskForMoreMemoryThanThereIs) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends the process where malloc would return nothing";
#endif
  const auto executor = MakeExecutor();
  const auto text = [](int64_t elements, int ops) {
    std::string program = "program { block 0 { var s float32 [1] ";
    std::string adds;
    for (int i = 0; i < ops; ++i) {
      program += StrCat("var y", i, " float32 [-1] {Out: [y", i,
                        "]} = tiny_fill() {shape = longs [", elements, "], number = ", i, "} ");
    }
    return program + "{Out: [s]} = tiny_sum(X: [y0]) } }";
  };
  const auto run = [&](const std::string& program, const FetchList& fetches) {
    return [&, program, fetches] { executor->Run(*ParseProgramText(program), {}, fetches); };
  };
  try {
    run(text(kMaxElementCount, 1), {"s"})();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    EXPECT_THAT(error.what(), HasSubstr("out of memory on cpu: "));
  }
  // Sums that would overflow 63 bits if there were some more.
  constexpr int kOps = 1025;
  FetchList fetches;
  for (int i = 0; i < kOps; ++i) fetches.push_back(StrCat("y", i));
  ExpectError(run(text(kMaxElementCount, kOps), fetches), ErrorCode::kResourceExhausted,
              "the plan needs 1152921504606846976 + 1125899906842624 bytes: expected at most "
              "1152921504606846976");
  EXPECT_EQ(executor->Run(*ParseProgramText(text(5, 1)), {}, {"s"})[0].Item<float>(), 5);
}

// What a run may change.
struct Kept {
  std::vector<float> seen, w;
  float count;
  int64_t step;
  friend bool operator==(const Kept&, const Kept&) = default;
};

Kept KeptBy(const Executor& executor) {
  const Scope& scope = executor.scope();
  return {scope.Get("seen").ToVector<float>(), scope.Get("w").ToVector<float>(),
          scope.Get("count").Item<float>(), scope.Get(kStepCounterName).Item<int64_t>()};
}

TEST_F(BadInput, FoundInTheMiddleOfARunLeavesNoTrace) {
  const auto reference = MakeTrainingExecutor();
  const auto disturbed = MakeTrainingExecutor();
  CompiledProgram wanted = reference->Compile(*ParseProgramText(kTraining));
  CompiledProgram program = disturbed->Compile(*ParseProgramText(kTraining));
  const std::vector<std::vector<float>> batches = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  for (const auto& batch : batches) {
    const Kept before = KeptBy(*disturbed);
    ExpectError(
        [&] {
          program.Run({{"x", Row({1, 2, -3})}}, {"loss", "checked"});
        },
        ErrorCode::kOutOfRange,
        "tiny_check (block 0, op #3): element 2 is -3, expected at least 0");
    EXPECT_TRUE(KeptBy(*disturbed) == before);
    EXPECT_EQ(program.Run({{"x", Row(batch)}}, {"loss", "checked"})[0].Item<float>(),
              wanted.Run({{"x", Row(batch)}}, {"loss", "checked"})[0].Item<float>());
    EXPECT_TRUE(KeptBy(*disturbed) == KeptBy(*reference));
  }
  EXPECT_EQ(KeptBy(*disturbed).step, 3);
  EXPECT_EQ(KeptBy(*disturbed).count, 3);
  EXPECT_THAT(KeptBy(*disturbed).seen, ElementsAre(12, 15, 18));
}

TEST_F(BadInput, FoundInABoundStepLeavesNoTrace) {
  const auto reference = MakeTrainingExecutor();
  const auto disturbed = MakeTrainingExecutor();
  Tensor good = Row({1, 2, 3});
  Tensor x = Row({1, 2, 3});
  const FetchList fetches = {"loss", "checked"};
  BoundProgram wanted =
      reference->Compile(*ParseProgramText(kTraining)).Bind({{"x", good}}, fetches);
  BoundProgram bound = disturbed->Compile(*ParseProgramText(kTraining)).Bind({{"x", x}}, fetches);
  for (int i = 0; i < 3; ++i) {
    x.data<float>()[0] = -1;
    EXPECT_THROW(bound.Step(), Error);
    EXPECT_THROW(bound.TimedStep(), Error);
    x.data<float>()[0] = 1;
    bound.Step();
    wanted.Step();
    EXPECT_EQ(bound.fetch(0).Item<float>(), wanted.fetch(0).Item<float>());
    EXPECT_TRUE(KeptBy(*disturbed) == KeptBy(*reference));
  }
}

// The user's position, though a pass has moved the update in front of the op that fails.
TEST_F(BadInput, IsFoundWhereTheUserPutTheOp) {
  const auto executor = MakeTrainingExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "x" float32 [3]
    var "checked" float32 [3]
    param "w" float32 [3] persistable
    {Out: ["checked"]} = tiny_check(X: ["x"])
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["x"]) {op_role = 2}
  } })"));
  ASSERT_EQ(program.program().root()->ops()[0]->type, "tiny_sgd");
  ExpectError(
      [&] {
        program.Run({{"x", Row({1, -1, 1})}}, {"checked"});
      },
      ErrorCode::kOutOfRange, "tiny_check (block 0, op #0): element 1 is -1, expected at least 0");
}

// Only what a later op may spoil is copied: running statistics, not parameters.
TEST_F(BadInput, CostsACopyOfWhatMayHaveToBeRestored) {
  const auto executor = MakeTrainingExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(kTraining));
  const BoundProgram bound = program.Bind({{"x", Row({1, 2, 3})}}, {"loss", "checked"});
  EXPECT_EQ(bound.statistics().rollback_bytes, 12);
  // What a startup program makes has to be restored from its second run on.
  CompiledProgram startup = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "x" float32 [3]
    var "new" float32 [3] persistable
    var "checked" float32 [3]
    {Out: ["new"]} = tiny_fill() {shape = longs [3]}
    {Out: ["checked"]} = tiny_check(X: ["new"])
  } })"));
  EXPECT_EQ(startup.Bind({}, {"checked"}).statistics().rollback_bytes, 12);
}

// Two losses with an update in between: the update must not outlive the failure of the second.
TEST_F(BadInput, FoundAfterAnUpdateTakesTheUpdateBack) {
  const auto executor = MakeTrainingExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "x" float32 [3]
    var "checked" float32 [3]
    param "w" float32 [3] persistable
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["x"]) {op_role = 2}
    {Out: ["checked"]} = tiny_check(X: ["x"])
  } })"));
  EXPECT_THROW(program.Run({{"x", Row({1, -1, 1})}}, {"checked"}), Error);
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(1, 2, 3));
  program.Run({{"x", Row({1, 1, 1})}}, {"checked"});
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(0, 1, 2));
}

// The same of an op of the backward pass, unless the forward pass has checked just that.
TEST_F(BadInput, FoundInTheBackwardPassTakesTheUpdateBack) {
  const auto executor = MakeTrainingExecutor();
  const auto compile = [&](const std::string& first) {
    return executor->Compile(*ParseProgramText(StrCat(R"(program { block 0 {
      var "x" float32 [3]
      var "other" float32 [3]
      var "checked" float32 [3]
      var "g" float32 [3]
      param "w" float32 [3] persistable
      {Out: ["checked"]} = )",
                                                      first, R"(
      {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["checked"]) {op_role = 2}
      {Out: ["g"]} = tiny_recheck(X: ["x"]) {op_role = 1, least = -5.0}
    } })")));
  };
  const FeedList feeds = {{"x", Row({1, -6, 1})}, {"other", Row({1, 1, 1})}};
  const FetchList fetches = {"checked", "g"};
  for (const char* first : {"tiny_copy(X: [x])", "tiny_check(X: [x]) {least = -7.0}",
                            "tiny_check(X: [other]) {least = -5.0}"}) {
    CompiledProgram program = compile(first);
    EXPECT_EQ(program.Bind(feeds, fetches).statistics().rollback_bytes, 12) << first;
    EXPECT_THROW(program.Run(feeds, fetches), Error);
    EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(1, 2, 3)) << first;
  }
  CompiledProgram checked_before = compile("tiny_check(X: [x]) {least = -5.0}");
  EXPECT_EQ(checked_before.Bind(feeds, fetches).statistics().rollback_bytes, 0);
  EXPECT_THROW(checked_before.Run(feeds, fetches), Error);
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(1, 2, 3));
}

// Persistables of a startup program that didn't come to its end are as missing as before.
TEST_F(BadInput, LeavesNoUninitialisedVariablesInTheScope) {
  const auto executor = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
  const auto startup = [](const std::string& last) {
    return ParseProgramText(StrCat(R"(program { block 0 {
      var "w" float32 [2] persistable
      var "v" float32 [2] persistable
      var "x" float32 [2]
      var "y" float32 [2]
      {Out: ["w"]} = tiny_fill() {shape = longs [2]}
      {Out: ["v"]} = tiny_fill() {shape = longs [2]}
      {Out: ["y"]} = )",
                                   last, " } }"));
  };
  const FeedList feeds = {{"x", Row({-1, 1})}};
  const uint64_t generation = executor->scope().generation();
  // Refused when shapes are inferred, when kernels are chosen, and when it runs.
  for (const char* last : {"no_such_op(X: [x])", "tiny_fill() {shape = longs [2, -2]}"}) {
    EXPECT_THROW(executor->Run(*startup(last), feeds, {"y"}), Error);
    EXPECT_EQ(executor->scope().generation(), generation);
  }
  EXPECT_THROW(executor->Run(*startup("tiny_check(X: [x])"), feeds, {"y"}), Error);
  EXPECT_THAT(executor->scope().Names(), ElementsAre(kStepCounterName));
  executor->Run(*startup("tiny_copy(X: [x])"), feeds, {"y"});
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(1, 1));
  // What was there before stays.
  executor->scope().Assign("w", Row({5, 6}));
  EXPECT_THROW(executor->Run(*startup("tiny_check(X: [x])"), feeds, {"y"}), Error);
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(5, 6));
  // So does what an earlier run of the same plan has made.
  for (const char* name : {"w", "v"}) executor->scope().Erase(name);
  CompiledProgram program = executor->Compile(*startup("tiny_check(X: [x])"));
  program.Run({{"x", Row({1, 1})}}, {"y"});
  EXPECT_THROW(program.Run(feeds, {"y"}), Error);
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(1, 1));
}

// A run that fails takes back what it wrote over the results of the run that made the variable.
TEST_F(BadInput, FoundInASecondRunKeepsWhatTheFirstOneMade) {
  const auto executor = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
  CompiledProgram program = executor->Compile(*ParseProgramText(R"(program { block 0 {
      var "w" float32 [2] persistable
      var "x" float32 [2]
      var "y" float32 [2]
      {Out: ["w"]} = tiny_copy(X: ["x"])
      {Out: ["y"]} = tiny_check(X: ["x"]) } })"));
  program.Run({{"x", Row({1, 2})}}, {"y"});
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(1, 2));
  Tensor x = Row({3, 4});
  BoundProgram bound = program.Bind({{"x", x}}, {"y"});
  EXPECT_THROW(program.Run({{"x", Row({-1, 5})}}, {"y"}), Error);
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(1, 2));
  bound.Step();
  x.data<float>()[0] = -1;
  EXPECT_THROW(bound.Step(), Error);
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(3, 4));
}

// Binding a startup program initializes nothing.
TEST_F(BadInput, BoundButNotRunLeavesVariablesMissing) {
  const auto executor = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
  const auto startup = ParseProgramText(R"(program { block 0 {
      var "w" float32 [2] persistable
      {Out: ["w"]} = tiny_fill() {shape = longs [2]} } })");
  CompiledProgram program = executor->Compile(*startup);
  BoundProgram bound = program.Bind({}, {});
  EXPECT_EQ(executor->scope().Find("w"), nullptr);
  EXPECT_THAT(executor->scope().Names(), ElementsAre(kStepCounterName));
  bound.Step();
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(1, 1));
}

// What was reserved for a plan that never ran goes with the plan, and no other plan notices.
TEST_F(BadInput, BoundAndNeverRunLeavesNothingBehind) {
  const auto executor = MakeExecutor();
  CompiledProgram startup = executor->Compile(*ParseProgramText(R"(program { block 0 {
      var "new" float32 [2] persistable
      {Out: ["new"]} = tiny_fill() {shape = longs [2]} } })"));
  CompiledProgram program = executor->Compile(*ParseProgramText(kPlain));
  Scope& scope = executor->scope();
  auto first = std::make_unique<BoundProgram>(startup.Bind({}, {}));
  EXPECT_NE(scope.FindMutable("new"), nullptr);
  BoundProgram other = program.Bind({{"x", x_}}, {"s"});
  first.reset();
  EXPECT_EQ(scope.FindMutable("new"), nullptr);
  other.Step();
  EXPECT_EQ(other.fetch(0).Item<float>(), 14);
  // Another plan, or the user, may have taken the name since.
  first = std::make_unique<BoundProgram>(startup.Bind({}, {}));
  BoundProgram second = startup.Bind({}, {});
  first.reset();
  second.Step();
  EXPECT_THAT(scope.Get("new").ToVector<float>(), ElementsAre(1, 1));
  scope.Erase("new");
  first = std::make_unique<BoundProgram>(startup.Bind({}, {}));
  scope.Set("new", Row({7, 8}));
  first.reset();
  EXPECT_THAT(scope.Get("new").ToVector<float>(), ElementsAre(7, 8));
}

TEST_F(BadInput, FoundInAFirstBoundStepLeavesAPlanThatSaysSo) {
  const auto executor = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
  CompiledProgram startup = executor->Compile(*ParseProgramText(R"(program { block 0 {
      var "x" float32 [2]
      var "y" float32 [2]
      var "w" float32 [2] persistable
      {Out: ["w"]} = tiny_fill() {shape = longs [2]}
      {Out: ["y"]} = tiny_check(X: ["x"]) } })"));
  Tensor x = Row({-1, 1});
  BoundProgram bound = startup.Bind({{"x", x}}, {"y"});
  EXPECT_THROW(bound.Step(), Error);
  EXPECT_EQ(bound.statistics().persistable_bytes, 8);
  EXPECT_THAT(executor->scope().Names(), ElementsAre(kStepCounterName));
  // The variables that it would write are gone, whatever the data are by now.
  x.data<float>()[0] = 1;
  ExpectError([&] { bound.Step(); }, ErrorCode::kFailedPrecondition,
              "the scope's storage has moved since Bind (a variable was set, loaded or erased): "
              "bind again");
  startup.Bind({{"x", x}}, {"y"}).Step();
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(1, 1));
}

TEST_F(BadInput, AFeedThatIsAVariableOfTheRunIsRefused) {
  const auto executor = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
  executor->scope().Set("w", Row({1, 2}));
  CompiledProgram program = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "w" float32 [2] persistable
    var "x" float32 [2]
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["x"]) {op_role = 2}
  } })"));
  ExpectError(
      [&] {
        program.Run({{"x", executor->scope().Get("w")}}, {});
      },
      ErrorCode::kInvalidArgument,
      "feed \"x\" shares its memory with \"w\", which the run writes: feed a copy "
      "(CopyToCpu)");
  program.Run({{"x", CopyToCpu(executor->scope().Get("w"))}}, {});
}

TEST_F(BadInput, IsNoFeedBesideAVariableOfTheRun) {
  const auto executor = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
  const auto buffer = std::make_shared<Buffer>(AllocatorOf(Place::Cpu()), 16, AllocationOptions{});
  const auto part = [&](int64_t offset, float value) {
    Tensor tensor({2}, DType::kFloat32, buffer, offset);
    std::ranges::fill(tensor.values<float>(), value);
    return tensor;
  };
  executor->scope().Set("w", part(0, 5));
  CompiledProgram program = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "w" float32 [2] persistable
    var "x" float32 [2]
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["x"]) {op_role = 2}
  } })"));
  program.Run({{"x", part(8, 2)}}, {});
  EXPECT_THAT(executor->scope().Get("w").ToVector<float>(), ElementsAre(3, 3));
  ExpectError(
      [&] {
        program.Run({{"x", Tensor({2}, DType::kFloat32, buffer, 4)}}, {});
      },
      ErrorCode::kInvalidArgument,
      "feed \"x\" shares its memory with \"w\", which the run writes: feed a copy (CopyToCpu)");
}

// Of an op that updates no parameters the mark means nothing.
TEST_F(BadInput, IsNoMarkOfFlatListsOnAnotherOp) {
  for (const char* mark : {"true", "1", "\"yes\""}) {
    const auto executor = MakeExecutor();
    CompiledProgram program = executor->Compile(*ParseProgramText(StrCat(R"(program { block 0 {
      var "x" float32 [-1, 2]
      var "y" float32 [-1, 2]
      var "s" float32 [1]
      param "w" float32 [2, 2] persistable
      {Out: ["y"]} = tiny_add(X: ["x"], Y: ["w"]) {is_flat = )",
                                                                         mark, R"(}
      {Out: ["s"]} = tiny_sum(X: ["y"]) {is_flat = )",
                                                                         mark, "} } }")));
    EXPECT_EQ(program.Run({{"x", x_}}, {"s"})[0].Item<float>(), 14) << mark;
  }
}

TEST_F(BadInput, OfAVariableWrittenInTwoShapesIsRefused) {
  const auto executor = std::make_unique<Executor>(Place::Cpu(), nullptr, &registry_);
  const auto program = [](int64_t second) {
    return ParseProgramText(StrCat(R"(program { block 0 {
      var "w" float32 [-1] persistable
      {Out: ["w"]} = tiny_fill() {shape = longs [2]}
      {Out: ["w"]} = tiny_fill() {shape = longs [)",
                                   second, "]} } }"));
  };
  ExpectError([&] { executor->Run(*program(3)); }, ErrorCode::kInvalidArgument,
              "tiny_fill (block 0, op #1): tiny_fill would write float32 [3] to \"w\", which the "
              "scope holds as float32 [2]");
  executor->Run(*program(2));
  ExpectError([&] { executor->Run(*program(3)); }, ErrorCode::kInvalidArgument,
              "tiny_fill (block 0, op #1): tiny_fill would write float32 [3] to \"w\", which the "
              "scope holds as float32 [2]");
}

}  // namespace
}  // namespace skiff
