// Errors of loops name the place, and leave the scope as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/loop_networks.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using layers::Site;
using ::testing::HasSubstr;

TEST(LoopErrors, NameTheIterationAndLeaveTheScope) {
  const auto looks_up = [] {
    const Variable ids = layers::Data("ids", {4, 1}, DType::kInt64);
    const Variable first = layers::FillConstant({1, 1}, DType::kFloat32, 0.0);
    layers::StaticRnn rnn;
    rnn.Body([&] {
      const Variable id = rnn.StepInput(ids);
      const Variable before = rnn.Memory(first);
      const Variable next =
          before + layers::Embedding(id, {.rows = 10, .width = 1, .param_attr = {.name = "e"}});
      rnn.UpdateMemory(before, next);
      rnn.StepOutput(next);
    });
    return layers::Mean(rnn.Outputs()[0]);
  };
  const std::string text = ErrorText([&] {
    Train(looks_up, {{"ids", Tensor::FromValues<int64_t>({4, 1}, {1, 2, 99, 3})}});
  });
  EXPECT_THAT(text, HasSubstr("iteration 2"));
  EXPECT_THAT(text, HasSubstr("99"));
}

// A failing iteration leaves a counter of the scope as it was before the run, and the next run
// computes what it would have computed.
TEST(LoopErrors, LeaveWhatTheBodyHasWrittenToTheScope) {
  Network network;
  Variable counter;
  {
    const ProgramGuard guard(&network.main, &network.startup);
    const Variable ids = layers::Data("ids", {4, 1}, DType::kInt64);
    counter = CreatePersistable("counter", {1}, DType::kFloat32, 5.0, Site::current());
    layers::StaticRnn rnn;
    rnn.Body([&] {
      const Variable id = rnn.StepInput(ids);
      layers::Increment(counter);
      rnn.StepOutput(layers::Embedding(id, {.rows = 10, .width = 1, .param_attr = {.name = "e"}}));
    });
    network.loss = layers::Mean(rnn.Outputs()[0]);
  }
  Executor executor(Place::Cpu());
  executor.Run(network.startup);
  CompiledProgram step = executor.Compile(network.main);
  const auto run = [&](int64_t third) {
    return step.Run({{"ids", Tensor::FromValues<int64_t>({4, 1}, {1, 2, third, 3})}},
                    {network.loss});
  };
  run(4);
  EXPECT_EQ(executor.scope().Get("counter").Item<float>(), 9.0f);
  EXPECT_NE(ErrorText([&] { run(99); }), "");
  EXPECT_EQ(executor.scope().Get("counter").Item<float>(), 9.0f);
  run(4);
  EXPECT_EQ(executor.scope().Get("counter").Item<float>(), 13.0f);
}

TEST(LoopErrors, AVariableOfTheBodyIsUnknownOutside) {
  Network network;
  const ProgramGuard guard(&network.main, &network.startup);
  const Variable xs = layers::Data("xs", {4, 2, 3});
  Variable inside;
  layers::StaticRnn rnn;
  rnn.Body([&] {
    inside = layers::Tanh(rnn.StepInput(xs));
    rnn.StepOutput(inside);
  });
  EXPECT_THAT(ErrorText([&] { layers::Mean(inside); }), HasSubstr("not visible"));
  Executor executor(Place::Cpu());
  EXPECT_THAT(ErrorText([&] {
                executor.Run(network.main, {{"xs", Numbers({4, 2, 3}, 1)}}, {inside.name()});
              }),
              HasSubstr("fetch"));
}

TEST(LoopErrors, AStaticRnnHandsOnMemoriesOnly) {
  Network network;
  const ProgramGuard guard(&network.main, &network.startup);
  const Variable xs = layers::Data("xs", {4, 2, 3});
  const Variable sum = layers::FillConstant({2, 3}, DType::kFloat32, 0.0);
  layers::StaticRnn rnn;
  EXPECT_THAT(ErrorText([&] {
                rnn.Body([&] {
                  layers::AssignTo(sum + rnn.StepInput(xs), sum);
                  rnn.StepOutput(sum);
                });
              }),
              HasSubstr("expected a memory"));
}

// Returns the message of the Error that a run of a program throws. `goes_on` is true in the scope.
std::string RunError(const std::string& program, const FeedList& feeds, const FetchList& fetches,
                     const CompileOptions& options = {}) {
  Executor executor(Place::Cpu());
  executor.scope().Set("goes_on", Tensor::FromValues<bool>({1}, {true}));
  CompiledProgram step = executor.Compile(*ParseProgramText(program), options);
  return ErrorText([&] { step.Run(feeds, fetches); });
}

TEST(LoopErrors, APersistableCondition) {
  EXPECT_THAT(RunError(R"(program {
    block 0 {
      var goes_on bool [1] persistable
      var scopes step_scopes float32 []
      {Out: [goes_on], StepScopes: [scopes]} = while(Condition: [goes_on], X: [goes_on])
          {sub_block = block 1}
    }
    block 1 parent=0 {
      var ends bool [1]
      {Out: [ends]} = logical_not(X: [goes_on])
      {Out: [goes_on]} = assign(X: [ends])
    } })",
                       {}, {"goes_on"}),
              HasSubstr("is persistable"));
}

TEST(LoopErrors, AConditionThatNeverChanges) {
  EXPECT_THAT(RunError(R"(program {
    block 0 {
      var on bool [1]
      var scopes step_scopes float32 []
      {Out: [on]} = fill_constant() {shape = longs [1], dtype = 0, value = 1.0}
      {Out: [on], StepScopes: [scopes]} = while(Condition: [on]) {sub_block = block 1}
    }
    block 1 parent=0 {
      {Out: [on]} = fill_constant() {shape = longs [1], dtype = 0, value = 1.0}
    } })",
                       {}, {"on"}, {.max_loop_iterations = 100}),
              HasSubstr("max_loop_iterations"));
}

// A while that changes h, which begins as x, in two iterations.
std::string ChangesTwice(const std::string& x, const std::string& body) {
  return R"(program {
    block 0 {
      )" +
         x +
         R"(
      var h float32 [-1, 3]
      var loss float32 []
      var i int64 [1]
      var end int64 [1]
      var goes_on bool [1]
      var scopes step_scopes float32 []
      {Out: [h]} = assign(X: [x])
      {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
      {Out: [end]} = fill_constant() {shape = longs [1], dtype = 3, value = 2.0}
      {Out: [goes_on]} = less_than(X: [i], Y: [end])
      {Out: [h, i, goes_on], StepScopes: [scopes]} = while(Condition: [goes_on], X: [h, i, end])
          {sub_block = block 1}
      {Out: [loss]} = mean(X: [h])
    }
    block 1 parent=0 {
      var changed float32 [-1, 3]
      )" +
         body +
         R"(
      {Out: [h]} = assign(X: [changed])
      {Out: [i]} = increment(X: [i]) {step = 1.0}
      {Out: [goes_on]} = less_than(X: [i], Y: [end])
    } })";
}

TEST(LoopErrors, AVariableThatHasALoD) {
  Tensor ragged = Numbers({4, 3}, 1);
  ragged.set_lod({{0, 1, 4}});
  EXPECT_THAT(RunError(ChangesTwice("var x float32 [-1, 3] lod=1 check_feed",
                                    "{Out: [changed]} = scale(X: [h]) {scale = 0.5}"),
                       {{"x", ragged}}, {"loss"}),
              HasSubstr("has a LoD"));
}

TEST(LoopErrors, AVariableThatChangesItsShape) {
  EXPECT_THAT(RunError(ChangesTwice("var x float32 [-1, 3] check_feed",
                                    "{Out: [changed]} = concat(X: [h, h]) {axis = 0}"),
                       {{"x", Numbers({2, 3}, 1)}}, {"loss"}),
              HasSubstr("same shape"));
}

// The message names the variables of the program's author.
TEST(LoopErrors, AStateOrMemoryThatGrows) {
  Network network;
  const ProgramGuard guard(&network.main, &network.startup);
  const Variable xs = layers::Data("xs", {4, 2, 3});
  const Variable first = layers::Data("first", {2, 3});
  layers::StaticRnn rnn;
  const std::string of_memory = InvalidArgumentText([&] {
    rnn.Body([&] {
      const Variable before = rnn.Memory(first);
      rnn.UpdateMemory(before, layers::Concat({before, rnn.StepInput(xs)}, 1));
    });
  });
  EXPECT_THAT(of_memory, HasSubstr("loop_errors_test.cc:"));
  EXPECT_THAT(of_memory, HasSubstr("is float32 [2, 6], the memory \"static_rnn_0.tmp_0\" is "
                                   "float32 [2, 3]: expected the same"));
  const std::string of_state = InvalidArgumentText([&] {
    Repeat(2, [&](const Variable&) { layers::AssignTo(layers::Concat({first, first}, 1), first); });
  });
  EXPECT_THAT(of_state,
              HasSubstr("is float32 [2, 6], \"first\" is float32 [2, 3]: expected the same"));
}

// In the whole body, the name of a step input is that of the part.
TEST(LoopErrors, AStepInputThatTheBodyHasUsedBefore) {
  Network network;
  const ProgramGuard guard(&network.main, &network.startup);
  const Variable xs = layers::Data("xs", {4, 2, 3});
  const Variable condition = layers::FillConstant({1}, DType::kBool, 1.0);
  const auto refused = [&](const std::function<void()>& use) {
    layers::StaticRnn rnn;
    EXPECT_THAT(InvalidArgumentText([&] {
                  rnn.Body([&] {
                    use();
                    rnn.StepOutput(rnn.StepInput(xs));
                  });
                }),
                HasSubstr("the step input \"xs\" is used in the body before its StepInput"));
  };
  refused([&] { layers::ReduceSum(xs); });
  refused([&] { layers::AssignTo(xs * 2.0f, xs); });
  refused([&] {
    layers::Cond(
        condition, [&] { return Variables{layers::ReduceSum(xs)}; },
        [&] { return Variables{layers::ReduceSum(xs)}; });
  });
  // Twice is once.
  layers::StaticRnn rnn;
  rnn.Body([&] {
    const Variable part = rnn.StepInput(xs);
    rnn.StepOutput(part + rnn.StepInput(xs));
  });
  EXPECT_EQ(rnn.Outputs()[0].dims(), xs.dims());
}

}  // namespace
}  // namespace skiff
