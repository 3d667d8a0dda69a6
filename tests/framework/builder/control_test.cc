#include "framework/builder/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

using Bools = std::vector<bool>;

// The bools that `layer` makes of x = (-1, 2, NaN).
Bools Holds(const std::function<Variable(const Variable& x)>& layer) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const Variable y = layer(layers::Data("x", {3}));
  EXPECT_TRUE(y.var().stop_gradient);
  Executor executor;
  return executor.Compile(main)
      .Run({{"x", Tensor::FromValues<float>({3}, {-1, 2, NAN})}}, {y})[0]
      .ToVector<bool>();
}

TEST(Comparisons, TakeNumbers) {
  EXPECT_EQ(Holds([](const Variable& x) { return layers::Equal(x, 2); }), (Bools{0, 1, 0}));
  EXPECT_EQ(Holds([](const Variable& x) { return layers::NotEqual(x, 2); }), (Bools{1, 0, 1}));
  EXPECT_EQ(Holds([](const Variable& x) { return layers::LessThan(x, 2); }), (Bools{1, 0, 0}));
  EXPECT_EQ(Holds([](const Variable& x) { return layers::LessEqual(x, 2); }), (Bools{1, 1, 0}));
  EXPECT_EQ(Holds([](const Variable& x) { return layers::GreaterThan(x, -1); }), (Bools{0, 1, 0}));
  EXPECT_EQ(Holds([](const Variable& x) { return layers::GreaterEqual(x, -1); }), (Bools{1, 1, 0}));
}

TEST(Comparisons, CompareWholeNumbersExactly) {
  const double number = 9007199254740991;  // 2^53 - 1, which no float is
  EXPECT_EQ(Holds([=](const Variable&) {
              return layers::Equal(layers::AssignValue({2}, std::vector<int64_t>{9007199254740991,
                                                                                 9007199254740990}),
                                   number);
            }),
            (Bools{1, 0}));
  EXPECT_THAT(InvalidArgumentText([] {
                Holds([](const Variable&) { return layers::LessThan(layers::Range(0, 3), 0.3); });
              }),
              HasSubstr("0.3 is no whole number"));
}

TEST(IsInf, AndItsLikeTellNumbersApart) {
  // (-1, 2, NaN) becomes (-infinity, 2, NaN).
  const auto with_infinity = [](const Variable& x) { return layers::Where(x < 0.0, -INFINITY, x); };
  EXPECT_EQ(Holds([&](const Variable& x) { return layers::IsInf(with_infinity(x)); }),
            (Bools{1, 0, 0}));
  EXPECT_EQ(Holds([&](const Variable& x) { return layers::ElementwiseIsFinite(with_infinity(x)); }),
            (Bools{0, 1, 0}));
}

TEST(Bitwise, CombinesBitsOfWholeNumbersAndBools) {
  const auto numbers = [] { return layers::AssignValue({2}, std::vector<int32_t>{12, -1}); };
  const auto others = [] { return layers::AssignValue({2}, std::vector<int32_t>{10, 6}); };
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const Variable x = numbers();
  const Variable y = others();
  const Variable is_large = layers::GreaterThan(x, 0.0);
  const std::vector<Variable> made = {layers::BitwiseAnd(x, y), layers::BitwiseOr(x, y),
                                      layers::BitwiseXor(x, y), layers::BitwiseNot(x)};
  const Variable is_small = layers::BitwiseNot(is_large);
  Executor executor;
  const auto out = executor.Compile(main).Run({}, {made[0], made[1], made[2], made[3], is_small});
  EXPECT_EQ(out[0].ToVector<int32_t>(), (std::vector<int32_t>{8, 6}));
  EXPECT_EQ(out[1].ToVector<int32_t>(), (std::vector<int32_t>{14, -1}));
  EXPECT_EQ(out[2].ToVector<int32_t>(), (std::vector<int32_t>{6, -7}));
  EXPECT_EQ(out[3].ToVector<int32_t>(), (std::vector<int32_t>{-13, 0}));
  EXPECT_EQ(out[4].ToVector<bool>(), (Bools{0, 1}));
}

TEST(IsNan, IsTrueOfNaNAlone) {
  EXPECT_EQ(Holds([](const Variable& x) { return layers::IsNan(x); }), (Bools{0, 0, 1}));
}

}  // namespace
}  // namespace skiff
