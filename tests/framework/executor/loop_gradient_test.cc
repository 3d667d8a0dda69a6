// The gradients of loops and branches, beside central differences. The programs are those of
// append_backward_test, which says what ops compute the gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/program.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/loop_networks.h"
#include "tests/harness/sgd_training.h"
#include "tests/harness/text_cases.h"

namespace skiff {
namespace {

using harness::TextCase;
using layers::Site;

std::string CasesPath(const std::string& topic) {
  return StrCat("tests/framework/autodiff/backward/", topic, ".txt");
}

// Returns feeds for a program: numbers of iterations are `count`, and bools are `flag` and not
// `flag` like true, false, false, true.
FeedList FeedsOf(const Program& program, int64_t count, bool flag) {
  FeedList feeds;
  for (const auto& var : program.root()->vars()) {
    if (!var->need_check_feed) continue;
    const Shape shape(var->dims);
    if (var->dtype == DType::kBool) {
      std::vector<bool> flags(static_cast<size_t>(shape.element_count()));
      for (size_t i = 0; i < flags.size(); ++i) flags[i] = flag == (i % 4 == 0 || i % 4 == 3);
      feeds.push_back({var->name, Tensor::FromValues<bool>(shape, flags)});
    } else if (var->dtype == DType::kInt64) {
      feeds.push_back({var->name, Tensor::FromValues<int64_t>(shape, {count})});
    } else {
      feeds.push_back({var->name, harness::SmallNumbers(shape, 1, var->dtype)});
    }
  }
  return feeds;
}

// The gradients of the parameters of a program in float64, and those by central differences.
struct Gradients {
  std::vector<double> computed;
  std::vector<double> by_differences;
};

Gradients GradientsOf(const std::string& text, int64_t count, bool flag) {
  const auto program = ParseProgramText(text);
  const FeedList feeds = FeedsOf(*program, count, flag);
  Executor executor(Place::Cpu());
  FetchList gradients;
  FetchList parameters;
  for (const ParameterGradient& pair :
       AppendBackward(DefaultOpRegistry(), program.get(), "loss").parameters) {
    parameters.push_back(pair.parameter->name);
    gradients.push_back(pair.gradient->name);
  }
  for (const auto& var : program->root()->vars()) {
    if (!var->persistable) continue;
    const int seed = 2 + static_cast<int>(executor.scope().Names().size());
    executor.scope().Set(var->name, harness::SmallNumbers(Shape(var->dims), seed, DType::kFloat64));
  }
  CompiledProgram step = executor.Compile(*program, {.memory = {.poison_dead_memory = true}});
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
        return step.Run(feeds, {"loss"})[0].Item<double>();
      };
      const double difference = loss_at(kept + kStep) - loss_at(kept - kStep);
      value = kept;
      found.by_differences.push_back(difference / (2 * kStep));
    }
  }
  return found;
}

void ExpectRightGradients(const Gradients& gradients) {
  ASSERT_EQ(gradients.computed.size(), gradients.by_differences.size());
  ASSERT_FALSE(gradients.computed.empty());
  double largest = 0;
  for (size_t i = 0; i < gradients.computed.size(); ++i) {
    EXPECT_NEAR(gradients.computed[i], gradients.by_differences[i], 1e-8) << i;
    largest = std::max(largest, std::abs(gradients.computed[i]));
  }
  EXPECT_GT(largest, 1e-4);
}

class LoopGradientsOf : public ::testing::TestWithParam<std::string> {};

TEST_P(LoopGradientsOf, TheProgramsOfTheFile) {
  const std::string path = CasesPath(GetParam());
  for (const TextCase& one : harness::ReadTextCases(path)) {
    for (const int64_t count : {1, 3}) {
      for (const bool flag : {true, false}) {
        SCOPED_TRACE(StrCat(path, ": ", one.title, ", ", count, " iterations, flag ", flag));
        ExpectRightGradients(GradientsOf(one.before, count, flag));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, LoopGradientsOf, ::testing::Values("branches", "recurrent", "while"),
                         [](const auto& info) { return info.param; });

TEST(LoopGradients, StopAtAMemoryThatIsMarkedSo) {
  const TextCase marked =
      harness::ReadTextCase(CasesPath("wanted"), "A memory that is marked stop_gradient");
  const Gradients stopped = GradientsOf(marked.before, 3, true);
  EXPECT_GT(std::abs(stopped.computed[0] - stopped.by_differences[0]), 1e-4);
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
