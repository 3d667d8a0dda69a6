// Loops and branches: the body of a plan computes what the same ops compute one after the other.
#include "framework/plan/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/plan/plan_text.h"
#include "tests/harness/error_text.h"
#include "tests/harness/sgd_training.h"

namespace skiff {
namespace {

using layers::Site;
using ::testing::HasSubstr;

Tensor Numbers(const Shape& shape, int seed) { return harness::SmallNumbers(shape, seed); }

struct Network {
  Program main;
  Program startup;
  Variable loss;
};

// The same feeds in each step.
std::vector<double> Train(const std::function<Variable()>& build, const FeedList& feeds,
                          int steps = 3, const CompileOptions& options = {}) {
  return harness::TrainBySgd(build, std::vector<FeedList>(static_cast<size_t>(steps), feeds),
                             options);
}

constexpr int64_t kBatch = 3;
constexpr int64_t kWidth = 4;
constexpr int64_t kHidden = 5;

Variable Cell(const Variable& x, const Variable& h) {
  const Variable from_x = layers::Fc(x, kHidden, {.param_attr = {.name = "u"}, .bias_attr = false});
  const Variable from_h = layers::Fc(h, kHidden, {.param_attr = {.name = "w"}, .bias_attr = false});
  return layers::Tanh(from_x + from_h);
}

Variable FirstState() { return layers::FillConstant({kBatch, kHidden}, DType::kFloat32, 0.0); }

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

TEST(CondTest, TrainsTheBranchThatRuns) {
  const auto with_cond = [] {
    const Variable x = layers::Data("x", {kBatch, kWidth});
    const Variable flag = layers::Data("flag", {1}, DType::kBool);
    const Variable h = layers::Fc(x, kHidden, {.param_attr = {.name = "a"}});
    const Variables out = layers::Cond(
        flag, [&] { return Variables{layers::Fc(h, kHidden, {.param_attr = {.name = "b"}})}; },
        [&] { return Variables{layers::Tanh(h)}; });
    return layers::Mean(layers::Square(out[0]));
  };
  const auto without = [](bool flag) {
    const Variable x = layers::Data("x", {kBatch, kWidth});
    layers::Data("flag", {1}, DType::kBool);
    const Variable h = layers::Fc(x, kHidden, {.param_attr = {.name = "a"}});
    const Variable from_fc = layers::Fc(h, kHidden, {.param_attr = {.name = "b"}});
    return layers::Mean(layers::Square(flag ? from_fc : layers::Tanh(h)));
  };
  for (const bool flag : {true, false}) {
    const FeedList feeds = {{"x", Numbers({kBatch, kWidth}, 3)},
                            {"flag", Tensor::FromValues<bool>({1}, {flag})}};
    EXPECT_EQ(Train(with_cond, feeds), Train([&] { return without(flag); }, feeds)) << flag;
  }
}

void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6f) << i;
}

TEST(SwitchTest, RunsTheFirstCaseThatHolds) {
  const auto choose = [](float x) {
    Program main, startup;
    Variable result;
    {
      const ProgramGuard guard(&main, &startup);
      const auto value = [](double number) {
        return layers::FillConstant({1}, DType::kFloat32, number);
      };
      const Variable input = layers::Data("x", {1});
      result = layers::Assign(value(0));
      layers::Switch choice;
      choice.Case(layers::LessThan(input, value(1)), [&] { layers::AssignTo(value(10), result); });
      choice.Case(layers::LessThan(input, value(2)), [&] { layers::AssignTo(value(20), result); });
      choice.Default([&] { layers::AssignTo(input * 100.0f, result); });
      EXPECT_THAT(InvalidArgumentText([&] { choice.Default([] {}); }),
                  ::testing::HasSubstr("a second default"));
    }
    Executor executor(Place::Cpu());
    return executor.Run(main, {{"x", Tensor::FromValues<float>({1}, {x})}}, {result})[0]
        .Item<float>();
  };
  EXPECT_EQ(choose(0), 10);
  EXPECT_EQ(choose(1), 20);
  EXPECT_EQ(choose(3), 300);
}

TEST(SwitchTest, AsksItsConditionsBeforeABlockChangesThem) {
  Program main, startup;
  Variable result;
  {
    const ProgramGuard guard(&main, &startup);
    const auto value = [](double number) {
      return layers::FillConstant({1}, DType::kFloat32, number);
    };
    const Variable flag = layers::Assign(layers::FillConstant({1}, DType::kBool, 1.0));
    result = layers::Assign(value(0));
    layers::Switch choice;
    choice.Case(flag, [&] {
      layers::AssignTo(layers::FillConstant({1}, DType::kBool, 0.0), flag);
      layers::AssignTo(value(1), result);
    });
    choice.Default([&] { layers::AssignTo(value(2), result); });
  }
  Executor executor(Place::Cpu());
  EXPECT_EQ(executor.Run(main, {}, {result})[0].Item<float>(), 1);
}

// Two layers for the rows of a batch, trained as if each row chose one of the results of both.
TEST(IfElseTest, TrainsEachBlockOnItsRows) {
  const auto layer = [](const Variable& x, const std::string& name) {
    return layers::Tanh(layers::Fc(x, 3, {.param_attr = {.name = name}}));
  };
  const auto by_rows = [&] {
    const Variable x = layers::Data("x", {4, 2});
    const Variable mask = layers::Data("mask", {4, 1}, DType::kBool);
    const Variable hidden = layers::Fc(x, 2, {.param_attr = {.name = "h"}});
    layers::IfElse choice(mask);
    choice.IfTrue([&] { return Variables{layer(choice.Input(hidden), "a")}; });
    choice.IfFalse([&] { return Variables{layer(choice.Input(hidden), "b")}; });
    return layers::Mean(layers::Square(choice.Outputs()[0]));
  };
  const auto by_where = [&] {
    const Variable x = layers::Data("x", {4, 2});
    const Variable mask = layers::Data("mask", {4, 1}, DType::kBool);
    const Variable hidden = layers::Fc(x, 2, {.param_attr = {.name = "h"}});
    const Variable chosen = layers::Cast(mask, DType::kFloat32);
    const Variable a = layer(hidden, "a");
    const Variable b = layer(hidden, "b");
    return layers::Mean(layers::Square(a * chosen + b * (chosen * -1.0f + 1.0f)));
  };
  for (const std::vector<bool>& mask : std::vector<std::vector<bool>>{
           {true, false, false, true}, {true, true, true, true}, {false, false, false, false}}) {
    const FeedList feeds = {{"x", Numbers({4, 2}, 3)},
                            {"mask", Tensor::FromValues<bool>({4, 1}, mask)}};
    ExpectNear(Train(by_rows, feeds), Train(by_where, feeds));
  }
}

// A state that a while changes n times, n known in a run only.
Variable Repeat(const Variable& x, const Variable& first, const Variable& n) {
  return layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], n); },
                           [&](const Variables& v) {
                             return Variables{layers::Scale(v[0], {.bias = 1.0f}), Cell(x, v[1])};
                           },
                           {layers::FillConstant({1}, DType::kInt64, 0.0), first})[1];
}

Variable RepeatUnrolled(const Variable& x, Variable h, int64_t n) {
  for (int64_t i = 0; i < n; ++i) h = Cell(x, h);
  return h;
}

// Its gradient reads what each run of it has left, one run for each step of the layer.
// In the first run, the scope doesn't have w when the program is lowered.
TEST(Loop, AViewOfAVariableThatTheBodyWritesIsACopy) {
  Program main, startup;
  Variable y;
  {
    const ProgramGuard guard(&main, &startup);
    const Variable w = layers::FillConstant({1}, DType::kFloat32, 1.0);
    main.root()->FindVar(w.name())->persistable = true;
    y = layers::FillConstant({1}, DType::kFloat32, 0.0);
    const Variable step = layers::FillConstant({1}, DType::kInt64, 0.0);
    const Variable limit = layers::FillConstant({1}, DType::kInt64, 3.0);
    const Variable goes_on = layers::LessThan(step, limit);
    layers::While loop(goes_on);
    loop.Body([&] {
      const Variable before = layers::Assign(w);
      layers::AssignTo(w * 2.0f, w);
      layers::AssignTo(y + before, y);
      layers::Increment(step);
      layers::AssignTo(layers::LessThan(step, limit), goes_on);
    });
  }
  Executor executor(Place::Cpu());
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(executor.Run(main, {}, {y})[0].Item<float>(), 1 + 2 + 4) << "run " << run;
  }
}

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
      const Variable state = Repeat(x, before, n);
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
        state = RepeatUnrolled(parts[t], state, counts[t]);
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
      return Variables{next, Repeat(x, v[1], next)};
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
    for (int64_t i = 1; i <= n; ++i) state = RepeatUnrolled(x, state, i);
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

// Returns the gradients of the parameters of a network in float64, and those by central
// differences.
struct Gradients {
  std::vector<double> computed;
  std::vector<double> by_differences;
};
Gradients GradientsOf(const std::function<Variable()>& build, const FeedList& feeds) {
  Network network;
  network.main.seed = network.startup.seed = 3;
  FetchList gradients;
  FetchList parameters;
  {
    const ProgramGuard guard(&network.main, &network.startup);
    network.loss = build();
    const BackwardResult result =
        AppendBackward(DefaultOpRegistry(), &network.main, network.loss.name());
    for (const ParameterGradient& pair : result.parameters) {
      parameters.push_back(pair.parameter->name);
      gradients.push_back(pair.gradient->name);
    }
  }
  Executor executor(Place::Cpu());
  executor.Run(network.startup);
  CompiledProgram step = executor.Compile(network.main, {.memory = {.poison_dead_memory = true}});
  Gradients found;
  for (const Tensor& gradient : step.Run(feeds, gradients)) {
    for (const double value : gradient.values<double>()) found.computed.push_back(value);
  }
  for (const std::string& name : parameters) {
    for (double& value : executor.scope().FindMutable(name)->values<double>()) {
      constexpr double kStep = 1e-5;
      const double kept = value;
      const auto loss_at = [&](double at) {
        value = at;
        return step.Run(feeds, {network.loss})[0].Item<double>();
      };
      const double difference = loss_at(kept + kStep) - loss_at(kept - kStep);
      value = kept;
      found.by_differences.push_back(difference / (2 * kStep));
    }
  }
  return found;
}

void ExpectRightGradients(const std::function<Variable()>& build, const FeedList& feeds) {
  const Gradients gradients = GradientsOf(build, feeds);
  ASSERT_EQ(gradients.computed.size(), gradients.by_differences.size());
  ASSERT_FALSE(gradients.computed.empty());
  double largest = 0;
  for (size_t i = 0; i < gradients.computed.size(); ++i) {
    EXPECT_NEAR(gradients.computed[i], gradients.by_differences[i], 1e-8) << i;
    largest = std::max(largest, std::abs(gradients.computed[i]));
  }
  EXPECT_GT(largest, 1e-4);
}

Variable Number(double value) { return layers::FillConstant({1}, DType::kInt64, value); }

Variable State(double value = 0.0) {
  return layers::FillConstant({2, 3}, DType::kFloat64, value).StopGradient(false);
}

Variable DoubleFc(const Variable& x, const std::string& name) {
  return layers::Fc(x, 3, {.param_attr = {.name = name}, .bias_attr = false});
}

Variable Input64() { return layers::Data("x", {2, 3}, DType::kFloat64); }

FeedList Feeds64() {
  return {{"x", Tensor::FromValues<double>({2, 3}, {0.1, -0.7, 0.4, 0.9, -0.2, 0.3})}};
}

// Appends a while with `count` iterations.
void Repeat(int64_t count, const std::function<void(const Variable& i)>& body) {
  const Variable i = Number(0);
  const Variable end = Number(static_cast<double>(count));
  const Variable goes_on = layers::LessThan(i, end);
  layers::While loop(goes_on);
  loop.Body([&] {
    body(i);
    layers::Increment(i);
    layers::AssignTo(layers::LessThan(i, end), goes_on);
  });
}

TEST(LoopGradients, OfAStateThatStartsAtZeroAndOnlyFeedsTheNextIteration) {
  ExpectRightGradients(
      [] {
        const Variable x = Input64();
        const Variable hidden = State();
        const Variable seen = State();
        Repeat(4, [&](const Variable&) {
          layers::AssignTo(layers::Tanh(DoubleFc(hidden, "w") + DoubleFc(x, "u")), seen);
          layers::AssignTo(seen * 0.5f, hidden);
        });
        return layers::Mean(layers::Square(seen));
      },
      Feeds64());
}

TEST(LoopGradients, OfVariablesThatTheBodyOverwritesTwice) {
  ExpectRightGradients(
      [] {
        const Variable x = Input64();
        const Variable h = State(0.5);
        Repeat(3, [&](const Variable&) {
          layers::AssignTo(layers::Tanh(DoubleFc(h, "w")), h);
          const Variable kept = layers::Square(h);
          layers::AssignTo(layers::Sigmoid(DoubleFc(h, "u") + x * kept), h);
        });
        return layers::Mean(layers::Square(h));
      },
      Feeds64());
}

TEST(LoopGradients, OfAVariableThatEachIterationSetsAnew) {
  ExpectRightGradients(
      [] {
        const Variable x = Input64();
        const Variable h = State(0.5);
        const Variable last = State();
        Repeat(3, [&](const Variable&) {
          layers::AssignTo(layers::Tanh(DoubleFc(h, "w")), h);
          layers::AssignTo(DoubleFc(h, "u") + x, last);
        });
        return layers::Mean(layers::Square(last));
      },
      Feeds64());
}

// A while in a while, as PaddlePaddle writes it with its gradient: the inner one assigns to h,
// which is outside of both, and ops after it read h.
//   for i < n: { for j < m: h = tanh(h * w);  <after>; }  loss = h
std::string NestedWhileOfPaddlePaddle(const std::string& after, const std::string& gradients) {
  return R"(program {
    block 0 {
      var x float64 [1] var w float64 [1] var n int64 [1] var m int64 [1]
      var i int64 [1] var h float64 [1] var go bool [1] var scopes step_scopes float32 []
      var loss float64 [] var "loss@GRAD" float64 [] var "h@GRAD" float64 [1]
      var "w@GRAD" float64 [1] var "x@GRAD" float64 [1]
      {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
      {Out: [h]} = assign(X: [x])
      {Out: [go]} = less_than(X: [i], Y: [n])
      {Out: [h, go, i], StepScopes: [scopes]} = while(Condition: [go], X: [h, w, m, i, n])
          {sub_block = block 1}
      {Out: [loss]} = reduce_sum(X: [h]) {reduce_all = true}
      {Out: ["loss@GRAD"]} = fill_any_like(X: [loss]) {value = 1.0, op_role = 1}
      {"X@GRAD": ["h@GRAD"]} = reduce_sum_grad(X: [h], "Out@GRAD": ["loss@GRAD"])
          {reduce_all = true, op_role = 1}
      {"X@GRAD": ["h@GRAD", "w@GRAD", "@EMPTY@", "@EMPTY@", "@EMPTY@"]} = while_grad(
          X: [h, w, m, i, n], Out: [h, go, i], "Out@GRAD": ["h@GRAD"], StepScopes: [scopes])
          {original_output_grad = strings ["h@GRAD"], sub_block = block 3, op_role = 1}
      {Out: ["x@GRAD"]} = assign(X: ["h@GRAD"]) {op_role = 1}
    }
    block 1 parent=0 {
      var j int64 [1] var go_on bool [1] var inner step_scopes float32 [] var i2 int64 [1] var go2 bool [1]
      var a float64 [1] var b float64 [1]
      {Out: [j]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
      {Out: [go_on]} = less_than(X: [j], Y: [m])
      {Out: [h, j, go_on], StepScopes: [inner]} = while(Condition: [go_on], X: [h, j, m, w])
          {sub_block = block 2}
  )" + after +
         R"(
      {Out: [i2]} = scale(X: [i]) {scale = 1.0, bias = 1.0}
      {Out: [go2]} = less_than(X: [i2], Y: [n])
      {Out: [i]} = assign(X: [i2])
      {Out: [go]} = assign(X: [go2])
    }
    block 2 parent=1 {
      var j2 int64 [1] var hw float64 [1] var t float64 [1] var go3 bool [1]
      {Out: [j2]} = scale(X: [j]) {scale = 1.0, bias = 1.0}
      {Out: [hw]} = elementwise_mul(X: [h], Y: [w])
      {Out: [t]} = tanh(X: [hw])
      {Out: [go3]} = less_than(X: [j2], Y: [m])
      {Out: [j]} = assign(X: [j2])
      {Out: [h]} = assign(X: [t])
      {Out: [go_on]} = assign(X: [go3])
    }
    block 3 parent=0 forward=1 {
      var "h@GRAD@0" float64 [1] var "h@GRAD@1" float64 [1] var "a@GRAD" float64 [1]
      var "w@GRAD" float64 [1]
  )" + gradients +
         R"(
      {"X@GRAD": ["h@GRAD", "@EMPTY@", "@EMPTY@", "w@GRAD"]} = while_grad(
          X: [h, j, m, w], Out: [h, j, go_on], "Out@GRAD": ["h@GRAD"], StepScopes: [inner])
          {original_output_grad = strings ["h@GRAD"], sub_block = block 4}
    }
    block 4 parent=3 forward=2 {
      var "t@GRAD" float64 [1] var "hw@GRAD" float64 [1] var "w@GRAD" float64 [1]
      {Out: ["t@GRAD"]} = assign(X: ["h@GRAD"])
      {"X@GRAD": ["hw@GRAD"]} = tanh_grad(Out: [t], "Out@GRAD": ["t@GRAD"])
      {"X@GRAD": ["h@GRAD"], "Y@GRAD": ["w@GRAD"]} = elementwise_mul_grad(
          X: [h], Y: [w], "Out@GRAD": ["hw@GRAD"])
    }
  })";
}

// The loss and the gradients by x and w.
std::vector<double> LossAndGradients(Executor* executor, const std::string& text, double x,
                                     double w) {
  const auto number = [](double value) { return Tensor::FromValues<double>({1}, {value}); };
  const auto count = [](int64_t value) { return Tensor::FromValues<int64_t>({1}, {value}); };
  std::vector<double> values;
  for (const Tensor& value :
       executor->Run(*ParseProgramText(text),
                     {{"x", number(x)}, {"w", number(w)}, {"n", count(3)}, {"m", count(2)}},
                     {"loss", "x@GRAD", "w@GRAD"})) {
    values.push_back(value.Item<double>());
  }
  return values;
}

void ExpectTrueGradients(const std::string& text) {
  Executor executor(Place::Cpu());
  const std::vector<double> found = LossAndGradients(&executor, text, 0.4, 1.7);
  constexpr double kStep = 1e-6;
  const auto slope = [&](double dx, double dw) {
    return (LossAndGradients(&executor, text, 0.4 + dx, 1.7 + dw)[0] -
            LossAndGradients(&executor, text, 0.4 - dx, 1.7 - dw)[0]) /
           (2 * kStep);
  };
  EXPECT_NEAR(found[1], slope(kStep, 0), 1e-7);
  EXPECT_NEAR(found[2], slope(0, kStep), 1e-7);
  EXPECT_GT(std::abs(found[1]), 0.1);
  EXPECT_GT(std::abs(found[2]), 0.1);
}

constexpr const char* kSquare = R"(
      {Out: [a]} = elementwise_mul(X: [h], Y: [h])
      {Out: [h]} = assign(X: [a]))";
constexpr const char* kGradientOfSquare = R"(
      {Out: ["a@GRAD"]} = assign(X: ["h@GRAD"])
      {"X@GRAD": ["h@GRAD@0"], "Y@GRAD": ["h@GRAD@1"]} = elementwise_mul_grad(
          X: [h], Y: [h], "Out@GRAD": ["a@GRAD"])
      {Out: ["h@GRAD"]} = sum(X: ["h@GRAD@0", "h@GRAD@1"]))";

// PaddlePaddle computes other gradients: its gradient op finds h as the last iteration left it.
TEST(LoopGradients, OfPaddlePaddlesFindWhatTheForwardOpHasRead) {
  ExpectTrueGradients(NestedWhileOfPaddlePaddle(kSquare, kGradientOfSquare));
}

TEST(LoopGradients, OfPaddlePaddlesComeInTheOppositeOrderOfTheirForwardOps) {
  const std::string twice = StrCat(kSquare, "\n", kSquare);
  ExpectTrueGradients(
      NestedWhileOfPaddlePaddle(twice, StrCat(kGradientOfSquare, "\n", kGradientOfSquare)));
  Executor executor(Place::Cpu());
  EXPECT_THAT(
      ErrorText([&] {
        LossAndGradients(&executor, NestedWhileOfPaddlePaddle(twice, kGradientOfSquare), 0.3, 0.7);
      }),
      ::testing::HasSubstr("elementwise_mul_grad: is the gradient of one of 2 ops that have the "
                           "same variables"));
}

TEST(LoopGradients, OfPaddlePaddlesRefuseANameThatMeansTwoValues) {
  Executor executor(Place::Cpu());
  const std::string text = NestedWhileOfPaddlePaddle(
      "{Out: [h]} = p_norm(X: [h]) {porder = 2.0, axis = -1, keepdim = true}",
      R"({"X@GRAD": ["h@GRAD"]} = p_norm_grad(X: [h], Out: [h], "Out@GRAD": ["h@GRAD"])
         {porder = 2.0, axis = -1, keepdim = true})");
  EXPECT_THAT(ErrorText([&] { LossAndGradients(&executor, text, 0.3, 0.7); }),
              ::testing::HasSubstr("p_norm_grad: reads \"h\" as it was before and after p_norm"));
}

TEST(LoopGradients, OfSwappedVariables) {
  ExpectRightGradients(
      [] {
        const Variable x = Input64();
        const Variables last =
            layers::WhileLoop([](const Variables& v) { return layers::LessThan(v[0], Number(3)); },
                              [&](const Variables& v) {
                                return Variables{layers::Increment(layers::Assign(v[0])),
                                                 layers::Tanh(DoubleFc(v[2], "w")), v[1]};
                              },
                              {Number(0), x, layers::Tanh(DoubleFc(x, "u"))});
        return layers::Mean(layers::Square(last[1]) + last[2]);
      },
      Feeds64());
}

TEST(LoopGradients, OfBothBranchesInsideALoop) {
  ExpectRightGradients(
      [] {
        const Variable xs = layers::Data("xs", {4, 2, 3}, DType::kFloat64);
        const Variable flags = layers::Data("flags", {4, 1}, DType::kBool);
        const Variable first = State();
        layers::StaticRnn rnn;
        rnn.Body([&] {
          const Variable x = rnn.StepInput(xs);
          const Variable flag = rnn.StepInput(flags);
          const Variable h = rnn.Memory(first);
          const Variable next = layers::Cond(
              flag, [&] { return Variables{layers::Tanh(DoubleFc(h, "w") + x)}; },
              [&] { return Variables{layers::Sigmoid(DoubleFc(h, "u") * x)}; })[0];
          rnn.UpdateMemory(h, next);
          rnn.StepOutput(next);
        });
        return layers::Mean(layers::Square(rnn.Outputs()[0]));
      },
      {{"xs", Tensor::FromValues<double>({4, 2, 3}, std::vector<double>(24, 0.4))},
       {"flags", Tensor::FromValues<bool>({4, 1}, {true, false, false, true})}});
}

// A branch that isn't taken leaves its result as it was, and the gradient goes past it.
TEST(LoopGradients, PassABranchThatIsNotTaken) {
  for (const bool taken : {true, false}) {
    ExpectRightGradients(
        [] {
          const Variable x = Input64();
          const Variable flag = layers::Data("flag", {1}, DType::kBool);
          const Variable h = DoubleFc(x, "w");
          const Variable one = Number(1);
          const Variable turns = layers::Cast(flag, DType::kInt64);
          const Variable goes_on = layers::LessThan(Number(0), turns);
          layers::While loop(goes_on);
          loop.Body([&] {
            layers::AssignTo(layers::Tanh(h) * 0.5f, h);
            layers::AssignTo(layers::LessThan(one, turns), goes_on);
          });
          return layers::Mean(layers::Square(h));
        },
        {Feeds64()[0], {"flag", Tensor::FromValues<bool>({1}, {taken})}});
  }
}

TEST(LoopGradients, OfAMemoryThatNoOpReadsAndOfTwoWithOneValue) {
  ExpectRightGradients(
      [] {
        const Variable xs = layers::Data("xs", {3, 2, 3}, DType::kFloat64);
        const Variable first = State();
        layers::StaticRnn rnn;
        rnn.Body([&] {
          const Variable x = rnn.StepInput(xs);
          const Variable unread = rnn.Memory(first);
          const Variable a = rnn.Memory(first);
          const Variable b = rnn.Memory(first);
          const Variable next = layers::Tanh(DoubleFc(a, "w") + b + DoubleFc(x, "u"));
          rnn.UpdateMemory(unread, next);
          rnn.UpdateMemory(a, next);
          rnn.UpdateMemory(b, next);
          rnn.StepOutput(next);
        });
        return layers::Mean(layers::Square(rnn.Outputs()[0]));
      },
      {{"xs", Tensor::FromValues<double>({3, 2, 3}, std::vector<double>(18, 0.6))}});
}

TEST(LoopGradients, StopAtAMemoryThatIsMarkedSo) {
  const auto network = [](bool stops) {
    return [stops] {
      const Variable xs = layers::Data("xs", {3, 2, 3}, DType::kFloat64);
      const Variable first = State();
      layers::StaticRnn rnn;
      rnn.Body([&] {
        const Variable x = rnn.StepInput(xs);
        const Variable h = rnn.Memory(first);
        h.StopGradient(stops);
        const Variable next = layers::Tanh(DoubleFc(h, "w") + DoubleFc(x, "u"));
        rnn.UpdateMemory(h, next);
        rnn.StepOutput(next);
      });
      return layers::Mean(layers::Square(rnn.Outputs()[0]));
    };
  };
  const FeedList feeds = {
      {"xs", Tensor::FromValues<double>({3, 2, 3}, std::vector<double>(18, 0.6))}};
  ExpectRightGradients(network(false), feeds);
  const Gradients stopped = GradientsOf(network(true), feeds);
  EXPECT_GT(std::abs(stopped.computed[0] - stopped.by_differences[0]), 1e-4);
}

// A sparse gradient inside a loop is the rows of all iterations.
TEST(LoopGradients, OfSparseLookups) {
  const auto network = [](bool is_sparse) {
    return [is_sparse] {
      const Variable ids = layers::Data("ids", {5, 2, 1}, DType::kInt64);
      const Variable first = layers::FillConstant({2, 3}, DType::kFloat32, 0.0);
      layers::StaticRnn rnn;
      rnn.Body([&] {
        const Variable id = layers::Reshape(rnn.StepInput(ids), {2});
        const Variable h = rnn.Memory(first);
        const Variable row = layers::Embedding(
            id, {.rows = 7, .width = 3, .is_sparse = is_sparse, .param_attr = {.name = "table"}});
        const Variable next = layers::Tanh(h * 0.5f + row);
        rnn.UpdateMemory(h, next);
        rnn.StepOutput(next);
      });
      return layers::Mean(layers::Square(rnn.Outputs()[0]));
    };
  };
  const FeedList feeds = {
      {"ids", Tensor::FromValues<int64_t>({5, 2, 1}, {1, 2, 2, 2, 0, 6, 1, 1, 3, 2})}};
  const std::vector<double> sparse = Train(network(true), feeds);
  const std::vector<double> dense = Train(network(false), feeds);
  ASSERT_EQ(sparse.size(), dense.size());
  for (size_t i = 0; i < dense.size(); ++i) EXPECT_NEAR(sparse[i], dense[i], 1e-6f) << i;
}

// A variable of the scope that the body writes: a gradient op reads what its iteration has read.
// In a while nobody knows how many rows there will be: the gradient has a place for each row of the
// table. Adam in its lazy mode sees which of them the iterations had.
TEST(LoopGradients, OfSparseLookupsInAWhile) {
  const auto train = [](bool in_a_while, int64_t n) {
    Program main, startup;
    main.seed = startup.seed = 7;
    Variable loss;
    {
      const ProgramGuard guard(&main, &startup);
      const Variable ids = layers::Data("ids", {5, 2}, DType::kInt64);
      const auto add = [&](const Variable& t, const Variable& sum) {
        const Variable id = layers::Reshape(layers::Gather(ids, t), {2});
        const Variable row = layers::Embedding(
            id, {.rows = 7, .width = 3, .is_sparse = true, .param_attr = {.name = "table"}});
        return layers::Tanh(sum * 0.5f + row);
      };
      const auto index = [](int64_t i) {
        return layers::FillConstant({1}, DType::kInt64, static_cast<double>(i));
      };
      Variable state = layers::FillConstant({2, 3}, DType::kFloat32, 0.0);
      if (in_a_while) {
        const Variable end = index(n);
        state = layers::WhileLoop(
            [&](const Variables& v) { return layers::LessThan(v[0], end); },
            [&](const Variables& v) {
              return Variables{layers::Scale(v[0], {.bias = 1.0f}), add(v[0], v[1])};
            },
            {index(0), state})[1];
      } else {
        for (int64_t i = 0; i < n; ++i) state = add(index(i), state);
      }
      loss = layers::Mean(layers::Square(state));
      optimizer::Adam({.learning_rate = 0.1, .lazy_mode = true}).Minimize(loss);
    }
    Executor executor(Place::Cpu());
    executor.Run(startup);
    CompiledProgram step = executor.Compile(main);
    const Tensor ids = Tensor::FromValues<int64_t>({5, 2}, {1, 2, 2, 2, 0, 6, 1, 1, 3, 2});
    for (int i = 0; i < 3; ++i) step.Run({{"ids", ids}}, {loss});
    const std::vector<float> table = executor.scope().Get("table").ToVector<float>();
    return std::vector<double>(table.begin(), table.end());
  };
  for (const int64_t n : {1, 3, 5}) ExpectNear(train(true, n), train(false, n));
}

TEST(LoopGradients, OfAFactorInTheScopeThatTheBodyWrites) {
  const auto network = [](bool with_loop) {
    return [with_loop] {
      const Variable xs = layers::Data("xs", {3, 2, 3});
      const Variable factor =
          CreatePersistable("factor", {1}, DType::kFloat32, 1.0, Site::current());
      const auto step = [&](const Variable& x) {
        layers::Increment(factor);
        return layers::Fc(x, 3, {.param_attr = {.name = "w"}, .bias_attr = false}) * factor;
      };
      if (with_loop) {
        layers::StaticRnn rnn;
        rnn.Body([&] { rnn.StepOutput(step(rnn.StepInput(xs))); });
        return layers::Mean(layers::Square(rnn.Outputs()[0]));
      }
      std::vector<Variable> outputs;
      for (const Variable& x : layers::Unstack(xs, 0)) {
        layers::Increment(factor);
        const Variable now = layers::Assign(factor).StopGradient();
        outputs.push_back(layers::Fc(x, 3, {.param_attr = {.name = "w"}, .bias_attr = false}) *
                          now);
      }
      return layers::Mean(layers::Square(layers::Stack(outputs, 0)));
    };
  };
  const FeedList feeds = {{"xs", Numbers({3, 2, 3}, 6)}};
  for (const Recompute recompute : {Recompute::kNothing, Recompute::kLeastMemory}) {
    EXPECT_EQ(Train(network(true), feeds, 2, {.memory = {.recompute = recompute}}),
              Train(network(false), feeds, 2));
  }
}

// One variable as the initial value of a memory that nothing reads, and of one that is read.
TEST(LoopGradients, OfAnInitialValueThatSeveralMemoriesHave) {
  for (const bool unread_first : {true, false}) {
    ExpectRightGradients(
        [unread_first] {
          const Variable xs = layers::Data("xs", {3, 2, 3}, DType::kFloat64);
          const Variable first = layers::Tanh(DoubleFc(Input64(), "v"));
          layers::StaticRnn rnn;
          rnn.Body([&] {
            const Variable x = rnn.StepInput(xs);
            Variable unread, a;
            if (unread_first) unread = rnn.Memory(first);
            a = rnn.Memory(first);
            if (!unread_first) unread = rnn.Memory(first);
            const Variable next = layers::Tanh(DoubleFc(a, "w") + x);
            rnn.UpdateMemory(unread, next);
            rnn.UpdateMemory(a, next);
            rnn.StepOutput(next);
          });
          return layers::Mean(layers::Square(rnn.Outputs()[0]));
        },
        {Feeds64()[0],
         {"xs", Tensor::FromValues<double>({3, 2, 3}, std::vector<double>(18, 0.3))}});
  }
}

// Branches in the body that may write a variable which the body reads and sets, too.
TEST(LoopGradients, OfVariablesThatABranchInsideMayWrite) {
  for (const bool taken : {true, false}) {
    ExpectRightGradients(
        [] {
          const Variable x = Input64();
          const Variable flag = layers::Data("flag", {1}, DType::kBool);
          const Variable s = layers::Assign(layers::Tanh(DoubleFc(x, "v")));
          const Variable sum = State(0.1);
          const Variable q = layers::Square(x);
          Repeat(3, [&](const Variable&) {
            layers::AssignTo(sum + DoubleFc(s, "w"), sum);
            layers::AssignTo(layers::Sigmoid(sum), s);
            layers::Cond(
                flag,
                [&] {
                  layers::AssignTo(q * s, s);
                  return Variables{};
                },
                [] { return Variables{}; });
          });
          return layers::Mean(layers::Square(sum) + s);
        },
        {Feeds64()[0], {"flag", Tensor::FromValues<bool>({1}, {taken})}});
  }
}

// What a branch may leave alone keeps its value across the border of a segment.
TEST(LoopSegments, ABranchThatIsNotTakenKeepsAValueOfAnEarlierSegment) {
  Network network;
  Variable kept;
  {
    const ProgramGuard guard(&network.main, &network.startup);
    const Variable x = layers::Data("x", {4});
    const Variable flag = layers::Data("flag", {1}, DType::kBool);
    kept = layers::Scale(x, {.scale = 2.0f});
    // Only a run can tell how many there are.
    const Variable count = layers::ShapeOf(layers::WhereIndex(layers::Cast(x, DType::kBool)));
    network.loss = layers::ReduceSum(layers::Cast(count, DType::kFloat32));
    layers::Cond(
        flag,
        [&] {
          layers::AssignTo(x, kept);
          return Variables{};
        },
        [] { return Variables{}; });
  }
  Executor executor(Place::Cpu());
  const Tensor x = Tensor::FromValues<float>({4}, {1, 0, 2, 3});
  for (const bool flag : {true, false}) {
    const Tensor found =
        executor.Run(network.main, {{"x", x}, {"flag", Tensor::FromValues<bool>({1}, {flag})}},
                     {kept.name(), network.loss.name()})[0];
    EXPECT_EQ(found.ToVector<float>(),
              flag ? (std::vector<float>{1, 0, 2, 3}) : (std::vector<float>{2, 0, 4, 6}));
  }
}

// A lookup in a branch that isn't taken touches no row of its table: momentum would move it.
TEST(LoopGradients, OfASparseLookupInABranchThatIsNotTaken) {
  const auto network = [] {
    const Variable ids = layers::Data("ids", {2, 1}, DType::kInt64);
    const Variable flag = layers::Data("flag", {1}, DType::kBool);
    const Variable x = layers::Data("x", {2, 3});
    const Variable h = layers::Fc(x, 3, {.param_attr = {.name = "w"}});
    const Variables out = layers::Cond(
        flag,
        [&] {
          return Variables{
              h +
              layers::Reshape(
                  layers::Embedding(
                      ids, {.rows = 5, .width = 3, .is_sparse = true, .param_attr = {.name = "t"}}),
                  {2, 3})};
        },
        [&] { return Variables{layers::Tanh(h)}; });
    return layers::Mean(layers::Square(out[0]));
  };
  Network built;
  FetchList gradient;
  {
    const ProgramGuard guard(&built.main, &built.startup);
    built.loss = network();
    for (const ParameterGradient& pair :
         AppendBackward(DefaultOpRegistry(), &built.main, built.loss.name()).parameters) {
      if (pair.parameter->name == "t") gradient = {pair.gradient->name};
    }
  }
  ASSERT_EQ(gradient.size(), 1u);
  Executor executor(Place::Cpu());
  executor.Run(built.startup);
  const Tensor rows = executor.Run(built.main,
                                   {{"ids", Tensor::FromValues<int64_t>({2, 1}, {3, 4})},
                                    {"flag", Tensor::FromValues<bool>({1}, {false})},
                                    {"x", Numbers({2, 3}, 3)}},
                                   gradient)[0];
  ASSERT_TRUE(rows.is_selected_rows());
  for (const int64_t row : rows.rows()) EXPECT_EQ(row, -1);
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
  EXPECT_THAT(of_memory, HasSubstr("loop_test.cc:"));
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
