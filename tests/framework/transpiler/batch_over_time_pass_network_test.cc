// Ops of loops that run on the rows of many iterations compute what they compute one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor.h"
#include "framework/executor/executor.h"
#include "framework/plan/loop.h"
#include "framework/transpiler/batch_over_time_pass.h"

namespace skiff {
namespace {

// Returns numbers in [-1, 1) that look random.
Tensor Numbers(const Shape& shape, int seed) {
  std::vector<float> values;
  uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 12345u;
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(state >> 8) * 0x1p-23f - 1.0f);
  }
  return Tensor::FromValues<float>(shape, values);
}

struct Network {
  Program main;
  Program startup;
  Variable loss;
};

// Builds a network with parameters that SGD trains, and runs `steps` steps on these feeds. Returns
// the losses and then all parameters, as bits.
std::vector<float> Train(const std::function<Variable()>& build, const FeedList& feeds,
                         int steps = 3, CompileOptions options = {}) {
  Network network;
  network.main.seed = network.startup.seed = 7;
  {
    const ProgramGuard guard(&network.main, &network.startup);
    network.loss = build();
    optimizer::Sgd({.learning_rate = 0.1}).Minimize(network.loss);
  }
  options.memory.poison_dead_memory = true;
  Executor executor(Place::Cpu());
  executor.Run(network.startup);
  CompiledProgram step = executor.Compile(network.main, options);
  std::vector<float> values;
  for (int i = 0; i < steps; ++i) {
    values.push_back(step.Run(feeds, {network.loss})[0].Item<float>());
  }
  for (const auto& var : network.main.root()->vars()) {
    if (!var->is_parameter) continue;
    const std::vector<float> of_parameter = executor.scope().Get(var->name).ToVector<float>();
    values.insert(values.end(), of_parameter.begin(), of_parameter.end());
  }
  return values;
}

constexpr int64_t kBatch = 3;

// h = tanh(x U + h W), with more weights than rows in an iteration.
Variable WideStaticRnn(int64_t steps, bool reverse) {
  constexpr int64_t kWide = 16;
  const Variable xs = layers::Data("xs", {steps, kBatch, kWide});
  layers::StaticRnn rnn({.reverse = reverse});
  const Variable first = layers::FillConstant({kBatch, kWide}, DType::kFloat32, 0.0);
  rnn.Body([&] {
    const Variable x = rnn.StepInput(xs);
    const Variable before = rnn.Memory(first);
    const auto product = [&](const Variable& of, const char* name) {
      return layers::Fc(of, kWide, {.param_attr = {.name = name}, .bias_attr = std::nullopt});
    };
    const Variable h = layers::Tanh(product(x, "u") + product(before, "w"));
    rnn.UpdateMemory(before, h);
    rnn.StepOutput(h);
  });
  return layers::Mean(layers::Square(rnn.Outputs()[0]));
}

TEST(BatchOverTimePass, MultipliesInputsBeforeAndSumsGradientsAfterTheIterations) {
  Network network;
  {
    const ProgramGuard guard(&network.main, &network.startup);
    network.loss = WideStaticRnn(4, false);
    AppendBackward(DefaultOpRegistry(), &network.main, network.loss.name());
  }
  Executor executor(Place::Cpu());
  executor.Run(network.startup);
  const BoundProgram bound =
      executor.Compile(network.main)
          .Bind({{"xs", Numbers({4, kBatch, 16}, 1)}}, {network.loss, "w@GRAD", "u@GRAD"});
  std::vector<std::string> batched;
  for (const Instruction& instruction : bound.plan().instructions) {
    if (instruction.kind != InstructionKind::kLoop) continue;
    for (const Instruction& inside : instruction.loop->body.instructions) {
      if (inside.batching == Batching::kNone) continue;
      const bool is_before = inside.batching == Batching::kBefore;
      batched.push_back(StrCat(inside.op->type, " of ", inside.op->Input("Y").front(),
                               is_before ? " before" : " after"));
    }
  }
  EXPECT_THAT(batched, ::testing::UnorderedElementsAre("mul of u before", "mul_grad of u after",
                                                       "mul_grad of w after"));
}

// A branch runs once, so there are no other rows to wait for.
TEST(BatchOverTimePass, LeavesBranchesAlone) {
  int64_t changes = 0;
  CompileOptions options;
  options.passes.plan_observer = [&](const PassReport& report, const Plan&) {
    if (report.pass == "batch_over_time") changes += report.changes;
  };
  const auto build = [] {
    const Variable x = layers::Data("x", {kBatch, 64});
    const Variable flag = layers::Data("flag", {1}, DType::kBool);
    const Variables out = layers::Cond(
        flag, [&] { return Variables{layers::Fc(x, 64)}; }, [&] { return Variables{x * 2.0f}; });
    return layers::Mean(layers::Square(out[0]));
  };
  Train(build, {{"x", Numbers({kBatch, 64}, 1)}, {"flag", Tensor::FromValues<bool>({1}, {true})}},
        1, options);
  EXPECT_EQ(changes, 0);
}

// A batch has up to 32 rows here, twice as many as the weights, those of 10 iterations.
TEST(BatchOverTimePass, ComputesWhatTheIterationsComputeOneByOne) {
  CompileOptions one_by_one;
  one_by_one.passes.skip = {"batch_over_time"};
  for (const int64_t steps : {1, 2, 4, 10, 11, 30, 171}) {
    const FeedList feeds = {{"xs", Numbers({steps, kBatch, 16}, 1)}};
    for (const bool reverse : {false, true}) {
      const auto build = [&] { return WideStaticRnn(steps, reverse); };
      EXPECT_THAT(Train(build, feeds), ::testing::Pointwise(::testing::FloatNear(1e-5f),
                                                            Train(build, feeds, 3, one_by_one)))
          << steps << " steps";
    }
  }
}

}  // namespace
}  // namespace skiff
