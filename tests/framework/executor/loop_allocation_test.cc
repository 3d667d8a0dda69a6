// A step with loops, in a steady state, allocates nothing: every operator new of the process is
// counted.
#include <gtest/gtest.h>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/tensor/tensor.h"
#include "memory/places.h"
#include "tests/harness/allocation_count.h"

namespace skiff {
namespace {

Variable Cell(const Variable& x, const Variable& h) {
  return layers::Tanh(layers::Fc(layers::Concat({x, h}, 1), 4, {.param_attr = {.name = "w"}}));
}

Variable Zeros() { return layers::FillConstant({2, 4}, DType::kFloat32, 0.0); }

Variable Recurrent() {
  const Variable xs = layers::Data("xs", {5, 2, 3});
  const Variable first = Zeros();
  layers::StaticRnn rnn;
  rnn.Body([&] {
    const Variable x = rnn.StepInput(xs);
    const Variable before = rnn.Memory(first);
    const Variable h = Cell(x, before);
    rnn.UpdateMemory(before, h);
    rnn.StepOutput(h);
  });
  return layers::Mean(rnn.Outputs()[0]);
}

// How often it runs is in the data, so that its stacks grow.
Variable Counting() {
  layers::Data("xs", {5, 2, 3});
  const Variable x = layers::Data("x", {2, 3});
  const Variable n = layers::Data("n", {1}, DType::kInt64);
  const Variables last =
      layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], n); },
                        [&](const Variables& v) {
                          return Variables{layers::Increment(layers::Assign(v[0])), Cell(x, v[1])};
                        },
                        {layers::FillConstant({1}, DType::kInt64, 0.0), Zeros()});
  return layers::Mean(last[1]);
}

Variable Branching() {
  const Variable flag = layers::FillConstant({1}, DType::kBool, 1.0);
  return layers::Cond(
      flag, [] { return Variables{layers::Reshape(Recurrent(), {1})}; },
      [] { return Variables{layers::FillConstant({1}, DType::kFloat32, 0.0)}; })[0];
}

// Sequences of different lengths, so that rows vary from iteration to iteration.
Variable Ragged() {
  const Variable words = layers::Data("words", {-1, 3}, DType::kFloat32, {.lod_level = 1});
  layers::DynamicRnn rnn;
  rnn.Body([&] {
    const Variable x = rnn.StepInput(words);
    const Variable before = rnn.Memory({4});
    const Variable h = Cell(x, before);
    rnn.UpdateMemory(before, h);
    rnn.StepOutput(h);
  });
  return layers::Mean(rnn.Outputs()[0]);
}

// Allocations in 10 steps after the first 3, of a program with its gradients.
int64_t CountInSteps(Variable (*build)()) {
  Program main, startup;
  Variable loss;
  {
    const ProgramGuard guard(&main, &startup);
    loss = build();
    AppendBackward(DefaultOpRegistry(), &main, loss.name());
  }
  Executor executor(Place::Cpu());
  executor.Run(startup);
  FeedList feeds;
  if (main.root()->FindLocalVar("xs") != nullptr) {
    feeds.emplace_back("xs", Tensor::FromValues<float>({5, 2, 3}, std::vector<float>(30, 0.5f)));
  }
  if (main.root()->FindLocalVar("words") != nullptr) {
    Tensor words = Tensor::FromValues<float>({12, 3}, std::vector<float>(36, 0.5f));
    words.set_lod({OffsetsOf(std::vector<int64_t>{3, 1, 6, 2})});
    feeds.emplace_back("words", words);
  }
  if (main.root()->FindLocalVar("n") != nullptr) {
    feeds.emplace_back("x", Tensor::FromValues<float>({2, 3}, std::vector<float>(6, 0.5f)));
    feeds.emplace_back("n", Tensor::FromValues<int64_t>({1}, {40}));
  }
  BoundProgram bound = executor.Compile(main).Bind(feeds, {loss, "w@GRAD"});
  for (int i = 0; i < 3; ++i) bound.Step();
  const int64_t before = harness::CountAllocations().own;
  const int64_t tensors_before = AllocatorOf(Place::Cpu()).statistics().allocations;
  for (int i = 0; i < 10; ++i) bound.Step();
  return harness::CountAllocations().own - before +
         AllocatorOf(Place::Cpu()).statistics().allocations - tensors_before;
}

TEST(StepWithLoops, AllocatesNothing) {
  EXPECT_EQ(CountInSteps(Recurrent), 0);
  EXPECT_EQ(CountInSteps(Counting), 0);
  EXPECT_EQ(CountInSteps(Branching), 0);
  EXPECT_EQ(CountInSteps(Ragged), 0);
}

}  // namespace
}  // namespace skiff
