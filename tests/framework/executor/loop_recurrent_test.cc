// StaticRNN: its plan computes what the steps compute one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/plan/plan_text.h"
#include "tests/framework/executor/loop_networks.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

Variable WithStaticRnn(int64_t steps, bool reverse = false) {
  const Variable xs = layers::Data("xs", {steps, kBatch, kWidth});
  const Variable first = FirstState();
  layers::StaticRnn rnn({.reverse = reverse});
  rnn.Body([&] {
    const Variable x = rnn.StepInput(xs);
    const Variable before = rnn.Memory(first);
    const Variable h = Cell(x, before);
    rnn.UpdateMemory(before, h);
    rnn.StepOutput(h);
  });
  return layers::Mean(layers::Square(rnn.Outputs()[0]));
}

Variable Unrolled(int64_t steps, bool reverse = false) {
  const Variable xs = layers::Data("xs", {steps, kBatch, kWidth});
  const std::vector<Variable> parts = layers::Unstack(xs, 0);
  Variable h = FirstState();
  std::vector<Variable> states(static_cast<size_t>(steps));
  for (int64_t k = 0; k < steps; ++k) {
    const auto t = static_cast<size_t>(reverse ? steps - 1 - k : k);
    h = Cell(parts[t], h);
    states[t] = layers::Assign(h);
  }
  return layers::Mean(layers::Square(layers::Stack(states, 0)));
}

class StaticRnnTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(StaticRnnTest, TrainsAsTheUnrolledProgram) {
  const int64_t steps = GetParam();
  const FeedList feeds = {{"xs", Numbers({steps, kBatch, kWidth}, 1)}};
  for (const bool reverse : {false, true}) {
    EXPECT_EQ(Train([&] { return WithStaticRnn(steps, reverse); }, feeds),
              Train([&] { return Unrolled(steps, reverse); }, feeds));
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, StaticRnnTest, ::testing::Values(1, 2, 4, 30));

TEST(NestedLoops, TrainAsTheUnrolledProgram) {
  constexpr int64_t kOuter = 3;
  constexpr int64_t kInner = 2;
  const auto nested = [] {
    const Variable xs = layers::Data("xs", {kOuter, kInner, kBatch, kWidth});
    const Variable first = FirstState();
    layers::StaticRnn outer;
    outer.Body([&] {
      const Variable part = outer.StepInput(xs);
      const Variable before = outer.Memory(first);
      layers::StaticRnn inner;
      inner.Body([&] {
        const Variable x = inner.StepInput(part);
        const Variable h = inner.Memory(before);
        const Variable next = Cell(x, h);
        inner.UpdateMemory(h, next);
        inner.StepOutput(next);
      });
      const Variable sum = layers::ReduceMean(inner.Outputs()[0], {.dims = {0}});
      outer.UpdateMemory(before, sum);
      outer.StepOutput(sum);
    });
    return layers::Mean(layers::Square(outer.Outputs()[0]));
  };
  const auto unrolled = [] {
    const Variable xs = layers::Data("xs", {kOuter, kInner, kBatch, kWidth});
    Variable state = FirstState();
    std::vector<Variable> outputs;
    for (const Variable& part : layers::Unstack(xs, 0)) {
      std::vector<Variable> inner;
      Variable h = state;
      for (const Variable& x : layers::Unstack(part, 0)) {
        h = Cell(x, h);
        inner.push_back(layers::Assign(h));
      }
      state = layers::ReduceMean(layers::Stack(inner, 0), {.dims = {0}});
      outputs.push_back(layers::Assign(state));
    }
    return layers::Mean(layers::Square(layers::Stack(outputs, 0)));
  };
  const FeedList feeds = {{"xs", Numbers({kOuter, kInner, kBatch, kWidth}, 4)}};
  // The unrolled program adds up the gradients of all steps in one sum, the nested one in two.
  ExpectNear(Train(nested, feeds), Train(unrolled, feeds));
}

// Each iteration draws other numbers; recomputation draws those of its iteration again.
TEST(LoopDropout, DiffersFromIterationToIteration) {
  const auto network = [] {
    const Variable xs = layers::Data("xs", {6, 1, 64});
    layers::StaticRnn rnn;
    rnn.Body([&] {
      const Variable x = rnn.StepInput(xs);
      const Variable h = layers::Fc(x, 64, {.param_attr = {.name = "w"}});
      rnn.StepOutput(layers::Tanh(layers::Dropout(layers::Relu(h), 0.5f)));
    });
    return rnn.Outputs()[0];
  };
  Network built;
  built.main.seed = built.startup.seed = 5;
  {
    const ProgramGuard guard(&built.main, &built.startup);
    built.loss = network();
  }
  Executor executor(Place::Cpu());
  executor.Run(built.startup);
  const Tensor same = Tensor::FromValues<float>({6, 1, 64}, std::vector<float>(384, 0.5f));
  const std::vector<float> out =
      executor.Run(built.main, {{"xs", same}}, {built.loss})[0].ToVector<float>();
  const auto step = [&](size_t t) {
    return std::vector<float>(out.begin() + static_cast<std::ptrdiff_t>(64 * t),
                              out.begin() + static_cast<std::ptrdiff_t>(64 * (t + 1)));
  };
  for (size_t t = 1; t < 6; ++t) EXPECT_NE(step(0), step(t)) << t;

  const auto loss = [&] { return layers::Mean(layers::Square(network())); };
  const FeedList feeds = {{"xs", Numbers({6, 1, 64}, 8)}};
  const std::vector<double> kept = Train(loss, feeds);
  for (const Recompute recompute : {Recompute::kCheapOps, Recompute::kLeastMemory}) {
    EXPECT_EQ(Train(loss, feeds, 3, {.memory = {.recompute = recompute}}), kept);
  }
}

// What the iterations leave for the gradient is most of the memory of this step.
TEST(LoopMemory, ABudgetReachesIntoTheBody) {
  const FeedList feeds = {{"xs", Numbers({20, kBatch, kWidth}, 1)}};
  const auto network = [] {
    const Variable xs = layers::Data("xs", {20, kBatch, kWidth});
    const Variable first = FirstState();
    layers::StaticRnn rnn;
    rnn.Body([&] {
      const Variable x = rnn.StepInput(xs);
      const Variable before = rnn.Memory(first);
      Variable h = Cell(x, before);
      for (int i = 0; i < 4; ++i) h = layers::Sigmoid(layers::Tanh(h) + before);
      rnn.UpdateMemory(before, h);
      rnn.StepOutput(h);
    });
    return layers::Mean(layers::Square(rnn.Outputs()[0]));
  };
  const auto planned_bytes = [&](const MemoryOptions& memory) {
    Program main, startup;
    Variable loss;
    {
      const ProgramGuard guard(&main, &startup);
      loss = network();
      optimizer::Sgd({.learning_rate = 0.1}).Minimize(loss);
    }
    Executor executor(Place::Cpu());
    executor.Run(startup);
    return executor.Compile(main, {.memory = memory})
        .Bind(feeds, {loss})
        .statistics()
        .planned_bytes;
  };
  const int64_t all = planned_bytes({});
  const int64_t least = planned_bytes({.recompute = Recompute::kLeastMemory});
  EXPECT_LT(least * 10, all * 9);
  const int64_t budget = (all + least) / 2;
  EXPECT_LE(planned_bytes({.recompute = Recompute::kBudget, .budget_bytes = budget}), budget);
  const CompileOptions within_budget = {
      .memory = {.recompute = Recompute::kBudget, .budget_bytes = budget}};
  EXPECT_EQ(Train(network, feeds, 3, within_budget), Train(network, feeds));
}

// The name is one of the body.
TEST(LoopMemory, ACheckpointMayBeInTheBody) {
  const FeedList feeds = {{"xs", Numbers({6, kBatch, kWidth}, 1)}};
  std::string name;
  const auto network = [&] {
    const Variable xs = layers::Data("xs", {6, kBatch, kWidth});
    const Variable first = FirstState();
    layers::StaticRnn rnn;
    rnn.Body([&] {
      const Variable x = rnn.StepInput(xs);
      const Variable before = rnn.Memory(first);
      const Variable kept = layers::Sigmoid(Cell(x, before));
      name = kept.name();
      const Variable h = layers::Tanh(layers::Exp(layers::Tanh(kept)));
      rnn.UpdateMemory(before, h);
      rnn.StepOutput(h);
    });
    return layers::Mean(layers::Square(rnn.Outputs()[0]));
  };
  const std::vector<double> expected = Train(network, feeds);
  CompileOptions options;
  options.memory.recompute = Recompute::kCheckpoints;
  options.memory.checkpoints = {name};
  EXPECT_EQ(Train(network, feeds, 3, options), expected);
  options.memory.checkpoints = {"nothing"};
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [&] { Train(network, feeds, 3, options); }),
              ::testing::HasSubstr("the program computes no checkpoint \"nothing\""));
}

TEST(LoopPlan, PrintsAndParses) {
  Network network;
  {
    const ProgramGuard guard(&network.main, &network.startup);
    network.loss = WithStaticRnn(4);
    AppendBackward(DefaultOpRegistry(), &network.main, network.loss.name());
  }
  Executor executor(Place::Cpu());
  executor.Run(network.startup);
  const BoundProgram bound =
      executor.Compile(network.main)
          .Bind({{"xs", Numbers({4, kBatch, kWidth}, 1)}}, {network.loss, "w@GRAD"});
  const std::string text = PrintPlan(bound.plan());
  EXPECT_EQ(PrintPlan(ParsePlan(DefaultOpRegistry(), text)), text);
}

}  // namespace
}  // namespace skiff
