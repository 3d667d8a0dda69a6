// The gradients of loops and branches, beside central differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
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
#include "framework/ir/program.h"
#include "tests/framework/executor/loop_networks.h"

namespace skiff {
namespace {

using layers::Site;

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

// A variable of the scope that the body writes: a gradient op reads what its iteration has read.
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

}  // namespace
}  // namespace skiff
