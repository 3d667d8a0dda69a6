// Ops of loops that run on the rows of many iterations compute what they compute one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/activation.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/plan/loop.h"
#include "framework/transpiler/batch_over_time_pass.h"
#include "tests/harness/sgd_training.h"

namespace skiff {
namespace {

using harness::SmallNumbers;
using harness::TrainBySgd;

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
      return layers::Fc(of, kWide, {.param_attr = {.name = name}, .bias_attr = false});
    };
    const Variable h = layers::Tanh(product(x, "u") + product(before, "w"));
    rnn.UpdateMemory(before, h);
    rnn.StepOutput(h);
  });
  return layers::Mean(layers::Square(rnn.Outputs()[0]));
}

TEST(BatchOverTimePass, MultipliesInputsBeforeAndSumsGradientsAfterTheIterations) {
  Program main, startup;
  Variable loss;
  {
    const ProgramGuard guard(&main, &startup);
    loss = WideStaticRnn(4, false);
    AppendBackward(DefaultOpRegistry(), &main, loss.name());
  }
  Executor executor(Place::Cpu());
  executor.Run(startup);
  const BoundProgram bound = executor.Compile(main).Bind({{"xs", SmallNumbers({4, kBatch, 16}, 1)}},
                                                         {loss, "w@GRAD", "u@GRAD"});
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
  TrainBySgd(
      build,
      {{{"x", SmallNumbers({kBatch, 64}, 1)}, {"flag", Tensor::FromValues<bool>({1}, {true})}}},
      options);
  EXPECT_EQ(changes, 0);
}

// A batch has up to 32 rows here, twice as many as the weights, those of 10 iterations.
TEST(BatchOverTimePass, ComputesWhatTheIterationsComputeOneByOne) {
  CompileOptions one_by_one;
  one_by_one.passes.skip = {"batch_over_time"};
  for (const int64_t steps : {1, 2, 4, 10, 11, 30, 171}) {
    const std::vector<FeedList> batches(3, {{"xs", SmallNumbers({steps, kBatch, 16}, 1)}});
    for (const bool reverse : {false, true}) {
      const auto build = [&] { return WideStaticRnn(steps, reverse); };
      EXPECT_THAT(
          TrainBySgd(build, batches),
          ::testing::Pointwise(::testing::DoubleNear(1e-5), TrainBySgd(build, batches, one_by_one)))
          << steps << " steps";
    }
  }
}

}  // namespace
}  // namespace skiff
