#include "framework/builder/math.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor.h"
#include "framework/executor/executor.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a layer makes of three numbers.
Tensor ResultOf(const std::vector<float>& x,
                const std::function<Variable(const Variable&)>& layer) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const Variable y = layer(layers::Data("x", {3}));
  Executor executor;
  return executor.Compile(main).Run({{"x", Tensor::FromValues<float>({3}, x)}}, {y})[0];
}

// The running sums of [[1, 2], [3, 4]].
Tensor Sums(const layers::CumsumOptions& options) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const Variable y = layers::Cumsum(layers::Data("x", {2, 2}), options);
  Executor executor;
  return executor.Compile(main).Run({{"x", Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4})}},
                                    {y})[0];
}

TEST(Cumsum, TakesItsAxisAndDirection) {
  EXPECT_THAT(Sums({}).ToVector<float>(), ElementsAre(1, 3, 3, 7));
  EXPECT_THAT(Sums({.axis = 0}).ToVector<float>(), ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(Sums({.exclusive = true}).ToVector<float>(), ElementsAre(0, 1, 0, 3));
  EXPECT_THAT(Sums({.reverse = true}).ToVector<float>(), ElementsAre(3, 2, 7, 4));
}

TEST(Cumsum, FlattensIntoOneRow) {
  const Tensor sums = Sums({.flatten = true});
  EXPECT_EQ(sums.shape(), Shape({4}));
  EXPECT_THAT(sums.ToVector<float>(), ElementsAre(1, 3, 6, 10));
}

TEST(Cumsum, RefusesAnAxisThatThereIsNot) {
  try {
    Sums({.axis = 2});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cumsum: axis"));
  }
}

TEST(SquaredL2Norm, AddsUpSquares) {
  EXPECT_THAT(ResultOf({1, 2, -3}, [](const Variable& x) { return layers::SquaredL2Norm(x); })
                  .ToVector<float>(),
              ElementsAre(14));
}

TEST(IsFinite, LooksAtEveryElement) {
  const auto is_finite = [](const Variable& x) { return layers::IsFinite(x); };
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(ResultOf({1, 2, 3}, is_finite).ToVector<bool>(), ElementsAre(true));
  EXPECT_THAT(ResultOf({1, 2, infinity}, is_finite).ToVector<bool>(), ElementsAre(false));
}

TEST(ElementwiseFloordiv, RoundsDown) {
  const auto halve = [](const Variable& x) {
    return layers::ElementwiseFloordiv(x, layers::FillConstant({1}, DType::kFloat32, 2));
  };
  EXPECT_THAT(ResultOf({-3, 4, 5}, halve).ToVector<float>(), ElementsAre(-2, 2, 2));
}

TEST(Where, TakesXWhereTheConditionHolds) {
  const auto at_least_2 = [](const Variable& x) {
    const Variable y = layers::FillConstant({3}, DType::kFloat32, 2);
    return layers::Where(layers::GreaterThan(x, y), x, y);
  };
  EXPECT_THAT(ResultOf({1, 5, 3}, at_least_2).ToVector<float>(), ElementsAre(2, 5, 3));
}

}  // namespace
}  // namespace skiff
