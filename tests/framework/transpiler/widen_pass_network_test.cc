#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/builder/activation.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/plan/plan_text.h"
#include "framework/transpiler/widen_pass.h"
#include "tests/framework/transpiler/bound_network.h"

namespace skiff {
namespace {

// A layer that trains.
Variable Parameter(const Variable& x) { return layers::Fc(x, 4, {.num_flatten_dims = 3}); }

// Computes `network` in bfloat16.
std::function<Variable(const Variable&)> InHalf(
    const std::function<Variable(const Variable&)>& network) {
  return [=](const Variable& x) {
    const Variable half = layers::Cast(Parameter(x), DType::kBFloat16);
    return layers::Cast(network(half), DType::kFloat32);
  };
}

Variable TwoReaders(const Variable& x) { return layers::Tanh(x) + layers::Sigmoid(x); }

// The same numbers as in float32, each result rounded.
TEST(WidenPass, RoundsEachResultOnce) {
  const auto rounded = [](const Variable& x) {
    return layers::Cast(layers::Cast(x, DType::kBFloat16), DType::kFloat32);
  };
  BoundNetwork half(InHalf(TwoReaders));
  BoundNetwork float32([&](const Variable& image) {
    const Variable x = rounded(Parameter(image));
    return rounded(rounded(layers::Tanh(x)) + rounded(layers::Sigmoid(x)));
  });
  EXPECT_EQ(half.Step(), float32.Step());
}

// Without the pass nothing could run.
TEST(WidenPass, RunsEvenIfItIsSkipped) {
  BoundNetwork skipped(InHalf(TwoReaders), {.skip = {"widen"}});
  EXPECT_EQ(skipped.Step(), BoundNetwork(InHalf(TwoReaders)).Step());
}

// Each op gets a copy of its own; common_subexpression finds that they are the same.
TEST(WidenPass, LeavesOneCopyForAllReaders) {
  const BoundNetwork apart(InHalf(TwoReaders),
                           {.trains = false, .skip = {"common_subexpression", "fuse_elementwise"}});
  const BoundNetwork shared(InHalf(TwoReaders), {.trains = false, .skip = {"fuse_elementwise"}});
  // x, twice; tanh and sigmoid rounded and widened; the sum rounded; the two casts of the program.
  EXPECT_EQ(apart.Count("cast"), 9);
  EXPECT_EQ(shared.Count("cast"), 8);
}

// Whatever kernels there are for half on this processor.
TEST(WidenPass, RunsTheFloat32KernelThatIsForced) {
  const auto casts = [](const std::function<Variable(const Variable&)>& network,
                        const std::string& type, const std::string& kernel) {
    return BoundNetwork(InHalf(network), {.trains = false, .kernels = {{type, kernel}}})
        .Count("cast");
  };
  const auto product = [](const Variable& x) {
    return layers::MatMul(x, x, {.transpose_y = true});
  };
  EXPECT_EQ(casts(product, "matmul_v2", "plain"), casts(product, "matmul_v2", "widened"));
  EXPECT_GE(casts(product, "matmul_v2", "plain"), 4) << "two of the program, two of the product";
  const auto convolution = [](const Variable& x) {
    return layers::Conv2d(x, {.filters = 2, .kernel = 3, .bias_attr = false});
  };
  EXPECT_EQ(casts(convolution, "conv2d", "onednn"), casts(convolution, "conv2d", "widened"));
  // There is a kernel of that name for half, which the pass leaves alone.
  EXPECT_EQ(casts(convolution, "conv2d", "winograd"), 2) << "those of the program";
}

TEST(WidenPass, DoesNothingToAPlanWithoutHalf) {
  const BoundNetwork network([](const Variable& x) { return TwoReaders(Parameter(x)); });
  Plan plan = network.plan();
  const std::string before = PrintPlan(plan);
  EXPECT_FALSE(WidenPass().IsRequiredBy(plan));
  const PassReport report = WidenPass().Apply({.registry = DefaultOpRegistry()}, &plan);
  EXPECT_EQ(report.changes, 0);
  EXPECT_EQ(PrintPlan(plan), before);
}

// Once an op is widened there is nothing left to do.
TEST(WidenPass, ChangesNothingTwice) {
  const BoundNetwork network(InHalf(TwoReaders), {.skip = DefaultPlanPasses()});
  Plan plan = network.plan();
  EXPECT_TRUE(WidenPass().IsRequiredBy(plan));
  EXPECT_EQ(WidenPass().Apply({.registry = DefaultOpRegistry()}, &plan).changes, 0);
}

}  // namespace
}  // namespace skiff
