#include "framework/builder/activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
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
              Pointwise(FloatEq(), {-0.04f, 0.0f, 3.0f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::LeakyRelu(x, 0.5f); }),
              Pointwise(FloatEq(), {-1.0f, 0.0f, 3.0f}));
}

TEST(Activation, HardSigmoidTakesItsLine) {
  EXPECT_THAT(Values([](const Variable& x) { return layers::HardSigmoid(x); }),
              Pointwise(FloatEq(), {0.1f, 0.5f, 1.0f}));
  EXPECT_THAT(Values([](const Variable& x) { return layers::HardSigmoid(x, 0.125f, 0.375f); }),
              Pointwise(FloatEq(), {0.125f, 0.375f, 0.75f}));
}

}  // namespace
}  // namespace skiff
