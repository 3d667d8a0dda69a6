// while: its plan computes what the iterations compute one after the other.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/loop_networks.h"

namespace skiff {
namespace {

// A while over the same cell, whose steps are counted by data: h = cell(x, h).
Variable WithWhile() {
  const Variable x = layers::Data("x", {kBatch, kWidth});
  const Variable n = layers::Data("n", {1}, DType::kInt64);
  const Variable i = layers::FillConstant({1}, DType::kInt64, 0.0);
  const Variable h = FirstState().StopGradient(false);
  const Variable goes_on = layers::LessThan(i, n);
  layers::While loop(goes_on);
  loop.Body([&] {
    layers::AssignTo(Cell(x, h), h);
    layers::Increment(i);
    layers::AssignTo(layers::LessThan(i, n), goes_on);
  });
  return layers::Mean(layers::Square(h));
}

Variable WithWhileLoop() {
  const Variable x = layers::Data("x", {kBatch, kWidth});
  const Variable n = layers::Data("n", {1}, DType::kInt64);
  const Variable zero = layers::FillConstant({1}, DType::kInt64, 0.0);
  const Variables last =
      layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], n); },
                        [&](const Variables& v) {
                          const Variable next = layers::Assign(v[0]);
                          return Variables{layers::Increment(next), Cell(x, v[1])};
                        },
                        {zero, FirstState()});
  return layers::Mean(layers::Square(last[1]));
}

Variable CellsInARow(int64_t steps) {
  const Variable x = layers::Data("x", {kBatch, kWidth});
  layers::Data("n", {1}, DType::kInt64);
  Variable h = FirstState();
  for (int64_t i = 0; i < steps; ++i) h = Cell(x, h);
  return layers::Mean(layers::Square(h));
}

class WhileTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(WhileTest, TrainsAsTheUnrolledProgram) {
  const int64_t steps = GetParam();
  const FeedList feeds = {{"x", Numbers({kBatch, kWidth}, 2)},
                          {"n", Tensor::FromValues<int64_t>({1}, {steps})}};
  const std::vector<double> expected = Train([&] { return CellsInARow(steps); }, feeds);
  EXPECT_EQ(Train(WithWhile, feeds), expected);
  EXPECT_EQ(Train(WithWhileLoop, feeds), expected);
}

INSTANTIATE_TEST_SUITE_P(Counts, WhileTest, ::testing::Values(1, 4, 30));

TEST(WhileWithoutIterations, LeavesEverythingAsItWas) {
  const FeedList feeds = {{"x", Numbers({kBatch, kWidth}, 2)},
                          {"n", Tensor::FromValues<int64_t>({1}, {0})}};
  const std::vector<double> values = Train(WithWhile, feeds);
  EXPECT_EQ(values[0], 0.0f);
  EXPECT_EQ(values[0], values[2]);  // the parameters' gradients are 0
}

TEST(WhileOfManyLengths, RunsLongThenShortThenLong) {
  Network network;
  {
    const ProgramGuard guard(&network.main, &network.startup);
    network.loss = WithWhile();
    AppendBackward(DefaultOpRegistry(), &network.main, network.loss.name());
  }
  Executor executor(Place::Cpu());
  executor.Run(network.startup);
  CompiledProgram step = executor.Compile(network.main, {.memory = {.poison_dead_memory = true}});
  std::map<int64_t, std::vector<float>> seen;
  for (const int64_t n : {4, 30, 1, 0, 4, 30, 1}) {
    const auto fetched = step.Run(
        {{"x", Numbers({kBatch, kWidth}, 2)}, {"n", Tensor::FromValues<int64_t>({1}, {n})}},
        {network.loss, "w@GRAD"});
    std::vector<float> values = fetched[1].ToVector<float>();
    values.push_back(fetched[0].Item<float>());
    const auto [found, is_new] = seen.emplace(n, values);
    EXPECT_EQ(found->second, values) << n;
  }
}

// In the first run, the scope doesn't have w when the program is lowered.
TEST(Loop, AViewOfAVariableThatTheBodyWritesIsACopy) {
  const auto program = ParseProgramText(R"(program {
    block 0 {
      var w float32 [1] persistable
      var y float32 [1]
      var i int64 [1]
      var end int64 [1]
      var goes_on bool [1]
      var scopes step_scopes float32 []
      {Out: [w]} = fill_constant() {shape = longs [1], dtype = 5, value = 1.0}
      {Out: [y]} = fill_constant() {shape = longs [1], dtype = 5, value = 0.0}
      {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
      {Out: [end]} = fill_constant() {shape = longs [1], dtype = 3, value = 3.0}
      {Out: [goes_on]} = less_than(X: [i], Y: [end])
      {Out: [w, y, i, goes_on], StepScopes: [scopes]} = while(Condition: [goes_on],
          X: [w, y, i, end]) {sub_block = block 1}
    }
    block 1 parent=0 {
      var before float32 [1]
      var doubled float32 [1]
      var sum float32 [1]
      {Out: [before]} = assign(X: [w])
      {Out: [doubled]} = scale(X: [w]) {scale = 2.0}
      {Out: [w]} = assign(X: [doubled])
      {Out: [sum]} = elementwise_add(X: [y], Y: [before])
      {Out: [y]} = assign(X: [sum])
      {Out: [i]} = increment(X: [i]) {step = 1.0}
      {Out: [goes_on]} = less_than(X: [i], Y: [end])
    } })");
  Executor executor(Place::Cpu());
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(executor.Run(*program, {}, {"y"})[0].Item<float>(), 1 + 2 + 4) << "run " << run;
  }
}

// A state that a while changes n times, n known in a run only.
Variable RepeatCell(const Variable& x, const Variable& first, const Variable& n) {
  return layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], n); },
                           [&](const Variables& v) {
                             return Variables{layers::Scale(v[0], {.bias = 1.0f}), Cell(x, v[1])};
                           },
                           {layers::FillConstant({1}, DType::kInt64, 0.0), first})[1];
}

Variable CellRepeated(const Variable& x, Variable h, int64_t n) {
  for (int64_t i = 0; i < n; ++i) h = Cell(x, h);
  return h;
}

// Its gradient reads what each run of it has left, one run for each step of the layer.
TEST(NestedLoops, AWhileInALayerWrittenStepByStep) {
  const auto nested = [] {
    const Variable xs = layers::Data("xs", {3, kBatch, kWidth});
    const Variable counts = layers::Data("counts", {3, 1}, DType::kInt64);
    const Variable first = FirstState();
    layers::StaticRnn rnn;
    rnn.Body([&] {
      const Variable x = rnn.StepInput(xs);
      const Variable n = rnn.StepInput(counts);
      const Variable before = rnn.Memory(first);
      const Variable state = RepeatCell(x, before, n);
      rnn.UpdateMemory(before, state);
      rnn.StepOutput(state);
    });
    return layers::Mean(layers::Square(rnn.Outputs()[0]));
  };
  for (const std::vector<int64_t>& counts :
       std::vector<std::vector<int64_t>>{{1, 3, 2}, {2, 0, 4}}) {
    const auto unrolled = [&] {
      const Variable xs = layers::Data("xs", {3, kBatch, kWidth});
      layers::Data("counts", {3, 1}, DType::kInt64);
      const std::vector<Variable> parts = layers::Unstack(xs, 0);
      Variable state = FirstState();
      std::vector<Variable> outputs;
      for (size_t t = 0; t < parts.size(); ++t) {
        state = CellRepeated(parts[t], state, counts[t]);
        outputs.push_back(layers::Assign(state));
      }
      return layers::Mean(layers::Square(layers::Stack(outputs, 0)));
    };
    const FeedList feeds = {{"xs", Numbers({3, kBatch, kWidth}, 4)},
                            {"counts", Tensor::FromValues<int64_t>({3, 1}, counts)}};
    ExpectNear(Train(nested, feeds), Train(unrolled, feeds));
  }
}

TEST(NestedLoops, AWhileInAWhileAndInABranch) {
  const auto nested = [](bool in_a_branch) {
    const Variable x = layers::Data("x", {kBatch, kWidth});
    const Variable n = layers::Data("n", {1}, DType::kInt64);
    const Variable zero = layers::FillConstant({1}, DType::kInt64, 0.0);
    const auto body = [&](const Variables& v) {
      const Variable next = layers::Scale(v[0], {.bias = 1.0f});
      return Variables{next, RepeatCell(x, v[1], next)};
    };
    const auto loop = [&] {
      return layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], n); }, body,
                               {zero, FirstState()});
    };
    if (!in_a_branch) return layers::Mean(layers::Square(loop()[1]));
    const Variable flag = layers::LessThan(zero, n);
    const Variables result = layers::Cond(
        flag, [&] { return Variables{loop()[1]}; }, [&] { return Variables{FirstState()}; });
    return layers::Mean(layers::Square(result[0]));
  };
  const auto unrolled = [](int64_t n) {
    const Variable x = layers::Data("x", {kBatch, kWidth});
    layers::Data("n", {1}, DType::kInt64);
    Variable state = FirstState();
    for (int64_t i = 1; i <= n; ++i) state = CellRepeated(x, state, i);
    return layers::Mean(layers::Square(state));
  };
  for (const int64_t n : {1, 3}) {
    const FeedList feeds = {{"x", Numbers({kBatch, kWidth}, 4)},
                            {"n", Tensor::FromValues<int64_t>({1}, {n})}};
    const std::vector<double> expected = Train([&] { return unrolled(n); }, feeds);
    ExpectNear(Train([&] { return nested(false); }, feeds), expected);
    ExpectNear(Train([&] { return nested(true); }, feeds), expected);
  }
}

TEST(LoopMemory, OfAForwardLoopDoesNotDependOnItsLength) {
  const auto planned = [](int64_t count) {
    Network network;
    {
      const ProgramGuard guard(&network.main, &network.startup);
      const Variable h = layers::FillConstant({64, 64}, DType::kFloat32, 0.5);
      Repeat(count, [&](const Variable&) { layers::AssignTo(layers::Tanh(h * 0.5f), h); });
      network.loss = layers::Mean(h);
    }
    Executor executor(Place::Cpu());
    BoundProgram bound = executor.Compile(network.main).Bind({}, {network.loss});
    bound.Step();
    return bound.statistics().planned_bytes;
  };
  EXPECT_EQ(planned(10), planned(10'000));
}

}  // namespace
}  // namespace skiff
