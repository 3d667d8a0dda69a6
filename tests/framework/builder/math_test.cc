#include "framework/builder/math.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
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
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Pointwise;

using Values = std::vector<float>;

// What `layer` makes of x.
Tensor Apply(const std::function<Variable(const Variable&)>& layer, const Shape& shape,
             const Values& x) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const Variable y = layer(layers::Data("x", {shape.dims().begin(), shape.dims().end()}));
  Executor executor;
  return executor.Compile(main).Run({{"x", Tensor::FromValues<float>(shape, x)}}, {y})[0];
}

// The running sums of [[1, 2], [3, 4]].
Tensor Sums(const layers::CumsumOptions& options) {
  return Apply([&](const Variable& x) { return layers::Cumsum(x, options); }, {2, 2}, {1, 2, 3, 4});
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
  const auto layer = [](const Variable& x) { return layers::SquaredL2Norm(x); };
  EXPECT_THAT(Apply(layer, {3}, {1, 2, -3}).ToVector<float>(), ElementsAre(14));
}

TEST(IsFinite, LooksAtEveryElement) {
  const auto is_finite = [](const Variable& x) { return layers::IsFinite(x); };
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(Apply(is_finite, {3}, {1, 2, 3}).ToVector<bool>(), ElementsAre(true));
  EXPECT_THAT(Apply(is_finite, {3}, {1, 2, infinity}).ToVector<bool>(), ElementsAre(false));
}

TEST(Reduce, TakesItsDims) {
  using Layer = Variable (*)(const Variable&, const layers::ReduceOptions&, layers::Site);
  const std::vector<std::pair<Layer, Values>> expected = {{layers::ReduceSum, {5, 4}},
                                                          {layers::ReduceMean, {2.5f, 2}},
                                                          {layers::ReduceMax, {4, 3}},
                                                          {layers::ReduceMin, {1, 1}},
                                                          {layers::ReduceProd, {4, 3}}};
  for (const auto& [layer, values] : expected) {
    const auto reduce = [&, layer = layer](const Variable& x) {
      return layer(x, {.dims = {-1}, .keep_dim = true}, layers::Site::current());
    };
    const Tensor out = Apply(reduce, {2, 2}, {1, 4, 3, 1});
    EXPECT_EQ(out.shape(), Shape({2, 1}));
    EXPECT_EQ(out.ToVector<float>(), values);
  }
}

TEST(Reduce, AsksWhetherAllOrAnyAreTrue) {
  const auto all = [](const Variable& x) {
    return layers::ReduceAll(layers::LessThan(layers::Scale(x, {.scale = 0}), x), {.dims = {1}});
  };
  const auto any = [](const Variable& x) {
    return layers::ReduceAny(layers::LessThan(layers::Scale(x, {.scale = 0}), x), {.dims = {1}});
  };
  EXPECT_THAT(Apply(all, {3, 2}, {1, 1, 1, 0, 0, 0}).ToVector<bool>(),
              ElementsAre(true, false, false));
  EXPECT_THAT(Apply(any, {3, 2}, {1, 1, 1, 0, 0, 0}).ToVector<bool>(),
              ElementsAre(true, true, false));
}

TEST(Products, MultiplyRowsAndMatrices) {
  const auto dot = [](const Variable& x) { return layers::Dot(x, x); };
  EXPECT_THAT(Apply(dot, {2, 2}, {1, 2, 3, 4}).ToVector<float>(), ElementsAre(5, 25));
  const auto addmm = [](const Variable& x) {
    return layers::Addmm(x, x, x, {.alpha = 2.0f, .beta = -1.0f});
  };
  EXPECT_THAT(Apply(addmm, {2, 2}, {1, 2, 3, 4}).ToVector<float>(), ElementsAre(13, 18, 27, 40));
}

TEST(ArgExtremes, TellPlaces) {
  const Values x = {1, 5, 2, 7, 0, 6};
  const auto max = [](const Variable& v) { return layers::ArgMax(v); };
  EXPECT_THAT(Apply(max, {2, 3}, x).ToVector<int64_t>(), ElementsAre(1, 0));
  const auto min = [](const Variable& v) { return layers::ArgMin(v, {.axis = 0}); };
  EXPECT_THAT(Apply(min, {2, 3}, x).ToVector<int64_t>(), ElementsAre(0, 1, 0));
  const auto of_all = [](const Variable& v) {
    return layers::ArgMax(v, {.keep_dim = true, .flatten = true});
  };
  EXPECT_EQ(Apply(of_all, {2, 3}, x).shape(), Shape({1, 1}));
  EXPECT_THAT(Apply(of_all, {2, 3}, x).ToVector<int64_t>(), ElementsAre(3));
}

TEST(Argsort, GivesValuesAndPlaces) {
  const auto values = [](const Variable& x) { return layers::Argsort(x).values; };
  EXPECT_THAT(Apply(values, {4}, {3, 1, 4, 2}).ToVector<float>(), ElementsAre(1, 2, 3, 4));
  const auto places = [](const Variable& x) {
    return layers::Argsort(x, {.descending = true}).indices;
  };
  EXPECT_THAT(Apply(places, {4}, {3, 1, 4, 2}).ToVector<int64_t>(), ElementsAre(2, 0, 3, 1));
}

TEST(Norms, AreOfAllElementsOrAlongAnAxis) {
  const Values x = {3, 4, 0, 5};
  const auto all = [](const Variable& v) { return layers::PNorm(v); };
  EXPECT_FLOAT_EQ(Apply(all, {2, 2}, x).Item<float>(), std::sqrt(50.0f));
  const auto rows = [](const Variable& v) { return layers::PNorm(v, {.order = 1, .axis = 1}); };
  EXPECT_THAT(Apply(rows, {2, 2}, x).ToVector<float>(), ElementsAre(7, 5));
  const auto unit = [](const Variable& v) { return layers::L2Normalize(v, 1); };
  EXPECT_THAT(Apply(unit, {2, 2}, x).ToVector<float>(),
              Pointwise(FloatEq(), Values{0.6f, 0.8f, 0, 1}));
}

TEST(CosSim, IsOneForRowsOfOneDirection) {
  const auto cosines = [](const Variable& x) { return layers::CosSim(x, layers::Scale(x, {})); };
  EXPECT_THAT(Apply(cosines, {2, 2}, {3, 4, 0, 5}).ToVector<float>(),
              Pointwise(FloatEq(), Values{1, 1}));
}

TEST(LogSoftmax, IsTheLogarithmOfProbabilities) {
  const auto layer = [](const Variable& x) { return layers::LogSoftmax(x, 0); };
  EXPECT_THAT(Apply(layer, {2, 1}, {2, 2}).ToVector<float>(),
              Pointwise(FloatEq(), Values{-std::log(2.0f), -std::log(2.0f)}));
}

TEST(ElementwiseMod, HasTheSignOfTheDivisor) {
  const auto remainder = [](const Variable& x) {
    return layers::ElementwiseMod(x, layers::FillConstant({1}, DType::kFloat32, 3));
  };
  EXPECT_THAT(Apply(remainder, {3}, {-4, 4, 6}).ToVector<float>(), ElementsAre(2, 1, 0));
}

TEST(ElementwiseFloordiv, RoundsDown) {
  const auto halve = [](const Variable& x) {
    return layers::ElementwiseFloordiv(x, layers::FillConstant({1}, DType::kFloat32, 2));
  };
  EXPECT_THAT(Apply(halve, {3}, {-3, 4, 5}).ToVector<float>(), ElementsAre(-2, 2, 2));
}

TEST(Where, TakesXWhereTheConditionHolds) {
  const auto at_least_2 = [](const Variable& x) {
    const Variable y = layers::FillConstant({3}, DType::kFloat32, 2);
    return layers::Where(layers::GreaterThan(x, y), x, y);
  };
  EXPECT_THAT(Apply(at_least_2, {3}, {1, 5, 3}).ToVector<float>(), ElementsAre(2, 5, 3));
}

}  // namespace
}  // namespace skiff
