// Errors of loops name the place, and leave the scope as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor.h"
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
  EXPECT_NE(text.find("iteration 2"), std::string::npos) << text;
  EXPECT_NE(text.find("99"), std::string::npos) << text;
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
  EXPECT_NE(ErrorText([&] { layers::Mean(inside); }).find("not visible"), std::string::npos);
  Executor executor(Place::Cpu());
  EXPECT_NE(ErrorText([&] {
              executor.Run(network.main, {{"xs", Numbers({4, 2, 3}, 1)}}, {inside.name()});
            }).find("fetch"),
            std::string::npos);
}

TEST(LoopErrors, OfThingsThatLoopsCannotHandOn) {
  const auto run = [](const std::function<Variable()>& build, const FeedList& feeds) {
    return ErrorText([&] {
      Network network;
      {
        const ProgramGuard guard(&network.main, &network.startup);
        network.loss = build();
      }
      Executor executor(Place::Cpu());
      executor.Run(network.startup);
      executor.Run(network.main, feeds, {network.loss});
    });
  };
  const FeedList parts = {{"xs", Numbers({4, 2, 3}, 1)}};
  EXPECT_NE(run(
                [] {
                  const Variable xs = layers::Data("xs", {4, 2, 3});
                  const Variable sum = layers::FillConstant({2, 3}, DType::kFloat32, 0.0);
                  layers::StaticRnn rnn;
                  rnn.Body([&] {
                    layers::AssignTo(sum + rnn.StepInput(xs), sum);
                    rnn.StepOutput(sum);
                  });
                  return sum;
                },
                parts)
                .find("expected a memory"),
            std::string::npos);
  EXPECT_NE(run(
                [] {
                  const Variable goes_on =
                      CreatePersistable("goes_on", {1}, DType::kBool, 1.0, Site::current());
                  layers::While loop(goes_on);
                  loop.Body([&] { layers::AssignTo(layers::LogicalNot(goes_on), goes_on); });
                  return goes_on;
                },
                {})
                .find("is persistable"),
            std::string::npos);
  Tensor ragged = Numbers({4, 1}, 1);
  ragged.set_lod({{0, 1, 4}});
  EXPECT_NE(run(
                [] {
                  const Variable x = layers::Data("x", {-1, 1}, DType::kFloat32, {.lod_level = 1});
                  const Variable h = layers::Assign(x);
                  Repeat(2, [&](const Variable&) { layers::AssignTo(h * 0.5f, h); });
                  return layers::Mean(h);
                },
                {{"x", ragged}})
                .find("has a LoD"),
            std::string::npos);
}

TEST(LoopErrors, AVariableThatChangesItsShape) {
  Network network;
  {
    const ProgramGuard guard(&network.main, &network.startup);
    const Variable x = layers::Data("x", {-1, 3});
    const Variable h = layers::Assign(x);
    Repeat(2, [&](const Variable&) { layers::AssignTo(layers::Concat({h, h}, 0), h); });
    network.loss = layers::Mean(h);
  }
  Executor executor(Place::Cpu());
  const std::string text = ErrorText([&] {
    executor.Run(network.main, {{"x", Numbers({2, 3}, 1)}}, {network.loss});
  });
  EXPECT_NE(text.find("same shape"), std::string::npos) << text;
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

TEST(LoopErrors, AConditionThatNeverChanges) {
  Network network;
  {
    const ProgramGuard guard(&network.main, &network.startup);
    const Variable goes_on = layers::FillConstant({1}, DType::kBool, 1.0);
    layers::While loop(goes_on);
    loop.Body([&] { layers::AssignTo(layers::FillConstant({1}, DType::kBool, 1.0), goes_on); });
    network.loss = goes_on;
  }
  Executor executor(Place::Cpu());
  CompiledProgram step = executor.Compile(network.main, {.max_loop_iterations = 100});
  const std::string text = ErrorText([&] { step.Run({}, {network.loss}); });
  EXPECT_NE(text.find("max_loop_iterations"), std::string::npos) << text;
}

}  // namespace
}  // namespace skiff
