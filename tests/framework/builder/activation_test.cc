#include "framework/builder/activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"

namespace skiff {
namespace {

using ::testing::FloatEq;
using ::testing::Pointwise;

// The values of y for x = (-2, 0, 3).
std::vector<float> Values(Variable (*function)(const Variable& x)) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const Variable y = function(layers::Data("x", {3}));
  Executor executor;
  return executor.Compile(main)
      .Run({{"x", Tensor::FromValues<float>({3}, {-2, 0, 3})}}, {y})[0]
      .ToVector<float>();
}

TEST(Activation, LeakyReluTakesItsSlope) {
  EXPECT_THAT(Values([](const Variable& x) { return layers::LeakyRelu(x); }),
              Pointwise(FloatEq(), {-0.02f, 0.0f, 3.0f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::LeakyRelu(x, 0.5f); }),
              Pointwise(FloatEq(), {-1.0f, 0.0f, 3.0f}));
}

TEST(Activation, HardSigmoidTakesItsLine) {
  EXPECT_THAT(Values([](const Variable& x) { return layers::HardSigmoid(x); }),
              Pointwise(FloatEq(), {1.0f / 6, 0.5f, 1.0f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::HardSigmoid(x, 0.125f, 0.375f); }),
              Pointwise(FloatEq(), {0.125f, 0.375f, 0.75f}));
}

TEST(Activation, FunctionsOfXAloneAppendTheirOp) {
  EXPECT_THAT(Values([](const Variable& x) { return layers::Abs(x); }),
              Pointwise(FloatEq(), {2.0f, 0.0f, 3.0f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Ceil(layers::Sin(x)); }),
              Pointwise(FloatEq(), {0.0f, 0.0f, 1.0f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Round(layers::Swish(x)); }),
              Pointwise(FloatEq(), {0.0f, 0.0f, 3.0f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Silu(x); }),
              Pointwise(FloatEq(), {-2 / (1 + std::exp(2.0f)), 0.0f, 3 / (1 + std::exp(-3.0f))}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Relu6(x * 3.0); }),
              Pointwise(FloatEq(), {0.0f, 0.0f, 6.0f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Softsign(x); }),
              Pointwise(FloatEq(), {-2.0f / 3, 0.0f, 0.75f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Reciprocal(x + 4.0); }),
              Pointwise(FloatEq(), {0.5f, 0.25f, 1.0f / 7}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Rsqrt(x + 6.0); }),
              Pointwise(FloatEq(), {0.5f, 1 / std::sqrt(6.0f), 1.0f / 3}));
}

TEST(Activation, EluAndSeluTakeTheirConstants) {
  const float below = std::expm1(-2.0f);
  EXPECT_THAT(Values([](const Variable& x) { return layers::Elu(x); }),
              Pointwise(FloatEq(), {below, 0.0f, 3.0f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Elu(x, 0.5f); }),
              Pointwise(FloatEq(), {0.5f * below, 0.0f, 3.0f}));
  EXPECT_THAT(
      Values([](const Variable& x) { return layers::Selu(x, {.scale = 2.0f, .alpha = 0.25f}); }),
      Pointwise(FloatEq(), {0.5f * below, 0.0f, 6.0f}));
}

TEST(Activation, GeluIsExactUnlessApproximated) {
  // 3 P(3) with P = 0.99865010 of a normal distribution, and its approximation by tanh.
  EXPECT_NEAR(Values([](const Variable& x) { return layers::Gelu(x); })[2], 2.9959503f, 1e-6f);
  EXPECT_NEAR(Values([](const Variable& x) { return layers::Gelu(x, true); })[2], 2.9963627f,
              1e-6f);
}

TEST(Activation, HardSwishMishAndSoftplusTakeTheirThresholds) {
  EXPECT_THAT(Values([](const Variable& x) { return layers::HardSwish(x); }),
              Pointwise(FloatEq(), {-1.0f / 3, 0.0f, 3.0f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::HardSwish(x, 2.0f, 4.0f, 3.0f); }),
              Pointwise(FloatEq(), {-0.5f, 0.0f, 1.5f}));
  EXPECT_NEAR(Values([](const Variable& x) { return layers::Mish(x); })[2],
              3 * std::tanh(std::log1p(std::exp(3.0f))), 1e-6f);
  EXPECT_NEAR(Values([](const Variable& x) { return layers::Mish(x, 2.0f); })[2],
              3 * std::tanh(3.0f), 1e-6f);
  EXPECT_THAT(Values([](const Variable& x) { return layers::Softplus(x, 2.0f, 5.0f); }),
              Pointwise(FloatEq(), {std::log1p(std::exp(-4.0f)) / 2, std::log(2.0f) / 2, 3.0f}));
}

TEST(Activation, PowTakesItsFactor) {
  EXPECT_THAT(Values([](const Variable& x) { return layers::Pow(x, 3.0f); }),
              Pointwise(FloatEq(), {-8.0f, 0.0f, 27.0f}));
}

TEST(Activation, FunctionsThatAreExactNear0) {
  EXPECT_THAT(Values([](const Variable& x) { return layers::Erf(x * 1e-6); }),
              Pointwise(FloatEq(), {-2.2567583e-6f, 0.0f, 3.3851376e-6f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Expm1(x * 1e-6); }),
              Pointwise(FloatEq(), {-1.999998e-6f, 0.0f, 3.0000045e-6f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Log1p(x * 1e-6); }),
              Pointwise(FloatEq(), {-2.000002e-6f, 0.0f, 2.9999955e-6f}));
}

TEST(Activation, InverseFunctionsOfAngles) {
  EXPECT_THAT(Values([](const Variable& x) { return layers::Asin(layers::Sin(x * 0.5)); }),
              Pointwise(FloatEq(), {-1.0f, 0.0f, 1.5f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Acos(layers::Cos(x)); }),
              Pointwise(FloatEq(), {2.0f, 0.0f, 3.0f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::Atan(x); }),
              Pointwise(FloatEq(), {std::atan(-2.0f), 0.0f, std::atan(3.0f)}));
}

TEST(Activation, LogSigmoidIsFiniteWhereTheSigmoidIs0) {
  EXPECT_THAT(Values([](const Variable& x) { return layers::LogSigmoid(x * 100.0); }),
              Pointwise(FloatEq(), {-200.0f, -std::log(2.0f), 0.0f}));
  // Beyond the threshold of softplus.
  EXPECT_THAT(Values([](const Variable& x) { return layers::LogSigmoid(x * 10.0); }),
              Pointwise(FloatEq(), {-20.0f, -std::log(2.0f), -9.3576229e-14f}));
}

TEST(Activation, GluGatesTheFirstHalf) {
  EXPECT_THAT(Values([](const Variable& x) {
                return layers::Glu(layers::Concat({x, layers::ZerosLike(x)}), 0);
              }),
              Pointwise(FloatEq(), {-1.0f, 0.0f, 1.5f}));
}

}  // namespace
}  // namespace skiff
