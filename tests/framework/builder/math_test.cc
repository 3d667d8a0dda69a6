#include "framework/builder/math.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/base/error.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/op/registry.h"
#include "tests/harness/error_text.h"

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

// The gradient of the sum of what `layer` makes of x, whose dims are unknown while the program is
// built.
Values GradientOf(const std::function<Variable(const Variable&)>& layer, const Shape& shape,
                  const Values& values) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", std::vector<int64_t>(static_cast<size_t>(shape.rank()), -1));
  x.StopGradient(false);
  const Variable loss = layers::ReduceSum(layer(x));
  AppendBackward(DefaultOpRegistry(), &main, loss.name());
  Executor executor;
  return executor.Compile(main)
      .Run({{"x", Tensor::FromValues<float>(shape, values)}}, {"x@GRAD"})[0]
      .ToVector<float>();
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

TEST(Where, BroadcastsItsOperands) {
  // A column of conditions, a matrix and a row.
  const auto layer = [](const Variable& x) {
    const Variable row = layers::AssignValue({3}, Values{-1, -2, -3});
    return layers::Where(layers::ReduceMax(x, {.dims = {1}, .keep_dim = true}) > 5.0, x, row);
  };
  const Tensor chosen = Apply(layer, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(chosen.shape(), Shape({2, 3}));
  EXPECT_THAT(chosen.ToVector<float>(), ElementsAre(-1, -2, -3, 4, 5, 6));
  EXPECT_THAT(GradientOf(layer, {2, 3}, {1, 2, 3, 4, 5, 6}), ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST(Where, BroadcastsToAShapeThatNoOperandHas) {
  const auto layer = [](const Variable& x) {
    const Variable row = layers::AssignValue({1, 2}, Values{-0.0f, 7});
    return layers::Where(layers::AssignValue({2, 1, 1}, std::vector<int32_t>{0, 1}) > 0.0, x, row);
  };
  const Tensor chosen = Apply(layer, {3, 1}, {1, 2, 3});
  EXPECT_EQ(chosen.shape(), Shape({2, 3, 2}));
  EXPECT_THAT(chosen.ToVector<float>(), ElementsAre(0, 7, 0, 7, 0, 7, 1, 1, 2, 2, 3, 3));
  EXPECT_TRUE(std::signbit(chosen.ToVector<float>()[0])) << "-0 became 0";
  EXPECT_THAT(GradientOf(layer, {3, 1}, {1, 2, 3}), ElementsAre(2, 2, 2));
}

TEST(Where, TakesNumbers) {
  const auto relu = [](const Variable& x) { return layers::Where(x > 0.0, x, 0.0); };
  EXPECT_THAT(Apply(relu, {3}, {-1, 2, 3}).ToVector<float>(), ElementsAre(0, 2, 3));
  const auto opposite = [](const Variable& x) { return layers::Where(x > 0.0, -7.0, x); };
  EXPECT_THAT(Apply(opposite, {3}, {-1, 2, 3}).ToVector<float>(), ElementsAre(-1, -7, -7));
  const auto sign = [](const Variable& x) { return layers::Where(x > 0.0, 1.0, -1.0); };
  EXPECT_THAT(Apply(sign, {3}, {-1, 2, 3}).ToVector<float>(), ElementsAre(-1, 1, 1));
}

TEST(Where, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(
      InvalidArgumentText([] {
        Apply([](const Variable& x) { return layers::Where(x > 0.0, x, layers::Range(0, 2)); }, {3},
              {1, 2, 3});
      }),
      HasSubstr("where: \"assign_value_0.tmp_0\" of shape [2] does not fit the shape [3]"));
}

TEST(ElementwiseOps, TakeNumbers) {
  const auto values = [](const std::function<Variable(const Variable&)>& layer) {
    return Apply(layer, {3}, {-4, 4, 6}).ToVector<float>();
  };
  EXPECT_THAT(values([](const Variable& x) { return layers::ElementwiseMax(x, 0); }),
              ElementsAre(0, 4, 6));
  EXPECT_THAT(values([](const Variable& x) { return layers::ElementwiseMin(x, 5.5); }),
              ElementsAre(-4, 4, 5.5f));
  EXPECT_THAT(values([](const Variable& x) { return layers::ElementwiseMod(x, 3); }),
              ElementsAre(2, 1, 0));
  EXPECT_THAT(values([](const Variable& x) { return layers::ElementwiseFloordiv(x, 3); }),
              ElementsAre(-2, 1, 2));
  EXPECT_THAT(values([](const Variable& x) { return layers::ElementwisePow(x, 2); }),
              Pointwise(FloatEq(), Values{16, 16, 36}));
  EXPECT_THAT(values([](const Variable& x) { return layers::ElementwisePow(2.0, x); }),
              Pointwise(FloatEq(), Values{0.0625f, 16, 64}));
}

TEST(ElementwiseOps, KeepTheRankOfAScalar) {
  const auto clipped = [](const Variable& x) { return layers::ElementwiseMax(layers::Mean(x), 0); };
  EXPECT_EQ(Apply(clipped, {3}, {1, 2, 3}).shape(), Shape());
}

TEST(ElementwiseOps, RefuseAFractionForWholeNumbers) {
  EXPECT_THAT(
      InvalidArgumentText([] {
        Apply([](const Variable&) { return layers::ElementwiseMax(layers::Range(0, 3), 0.5); }, {1},
              {1});
      }),
      HasSubstr("0.5 is no whole number that \"assign_value_0.tmp_0\" of int64 can hold"));
  EXPECT_THAT(InvalidArgumentText([] {
                Apply(
                    [](const Variable& x) {
                      return layers::ElementwiseMin(layers::Cast(x, DType::kInt32), 3e9);
                    },
                    {1}, {1});
              }),
              HasSubstr("3e+09 is no whole number"));
}

TEST(LogSumExp, IsTheLogarithmOfASum) {
  const auto rows = [](const Variable& x) {
    return layers::LogSumExp(x, {.dims = {-1}, .keep_dim = true});
  };
  const Tensor sums = Apply(rows, {2, 2}, {1000, 1000, 0, -1000});
  EXPECT_EQ(sums.shape(), Shape({2, 1}));
  EXPECT_THAT(sums.ToVector<float>(), Pointwise(FloatEq(), Values{1000 + std::log(2.0f), 0}));
  EXPECT_THAT(GradientOf(rows, {2, 2}, {1, 1, 0, -1000}),
              Pointwise(FloatEq(), Values{0.5f, 0.5f, 1, 0}));
  const auto all = [](const Variable& x) { return layers::LogSumExp(x); };
  EXPECT_EQ(Apply(all, {2, 2}, {0, 0, 0, 0}).shape(), Shape());
  EXPECT_FLOAT_EQ(Apply(all, {2, 2}, {0, 0, 0, 0}).Item<float>(), std::log(4.0f));
}

TEST(Variance, DividesByOneLessThanTheCount) {
  const auto unbiased = [](const Variable& x) { return layers::Variance(x, {.dims = {1}}); };
  EXPECT_THAT(Apply(unbiased, {2, 3}, {1, 2, 6, 5, 5, 5}).ToVector<float>(), ElementsAre(7, 0));
  const auto biased = [](const Variable& x) {
    return layers::Variance(x, {.dims = {0}, .keep_dim = true, .unbiased = false});
  };
  const Tensor of_columns = Apply(biased, {2, 2}, {1, 2, 5, 2});
  EXPECT_EQ(of_columns.shape(), Shape({1, 2}));
  EXPECT_THAT(of_columns.ToVector<float>(), ElementsAre(4, 0));
  const auto all = [](const Variable& x) { return layers::Variance(x); };
  EXPECT_FLOAT_EQ(Apply(all, {2, 2}, {1, 2, 3, 4}).Item<float>(), 5.0f / 3);
}

TEST(Variance, CountsInARunWhatIsUnknownBefore) {
  const std::vector<std::vector<int64_t>> all_dims = {{}, {0}, {-1}, {1, 0}};
  const std::vector<Values> expected = {{5.0f / 3}, {2, 2}, {0.5f, 0.5f}, {5.0f / 3}};
  for (size_t i = 0; i < all_dims.size(); ++i) {
    Program main, startup;
    ProgramGuard guard(&main, &startup);
    const Variable variance = layers::Variance(layers::Data("x", {-1, -1}), {.dims = all_dims[i]});
    Executor executor;
    CompiledProgram compiled = executor.Compile(main);
    EXPECT_THAT(
        compiled.Run({{"x", Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4})}}, {variance})[0]
            .ToVector<float>(),
        Pointwise(FloatEq(), expected[i]));
    EXPECT_TRUE(
        std::isnan(compiled.Run({{"x", Tensor::FromValues<float>({1, 1}, {1})}}, {variance})[0]
                       .ToVector<float>()[0]));
  }
}

TEST(Variance, DoesNotCancel) {
  const auto biased = [](const Variable& x) { return layers::Variance(x, {.unbiased = false}); };
  EXPECT_FLOAT_EQ(Apply(biased, {4}, {10000, 10001, 10002, 10003}).Item<float>(), 1.25f);
}

// 70,000 is no number of float16, nor is the square of 300.
TEST(Variance, OfHalfIsComputedInFloat32) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Scale(layers::Range(0, 70000), {});
  const Variable half = layers::Cast(layers::ElementwiseMod(x, 2), DType::kFloat16) * 600.0;
  const Variable variance = layers::Cast(layers::Std(half), DType::kFloat32);
  const float found = Executor(Place::Cpu()).Run(main, {}, {variance})[0].Item<float>();
  EXPECT_NEAR(found, 300.0f, 0.5f);
}

TEST(Variance, RefusesWholeNumbers) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  EXPECT_THAT(InvalidArgumentText([] { layers::Variance(layers::Range(0, 3)); }),
              HasSubstr("is int64, expected floats"));
}

TEST(Variance, HasTheGradientOfItsDefinition) {
  const auto unbiased = [](const Variable& x) { return layers::Variance(x, {.dims = {1}}); };
  EXPECT_THAT(GradientOf(unbiased, {1, 3}, {1, 2, 6}), Pointwise(FloatEq(), Values{-2, -1, 3}));
}

TEST(Variance, RefusesASingleElement) {
  EXPECT_THAT(InvalidArgumentText([] {
                Apply([](const Variable& x) { return layers::Variance(x, {.dims = {1}}); }, {3, 1},
                      {1, 2, 3});
              }),
              HasSubstr("variance: x of shape [3, 1] has 1 elements for each variance"));
}

TEST(Std, IsTheRootOfTheVarianceAndFlatAt0) {
  const auto rows = [](const Variable& x) { return layers::Std(x, {.dims = {1}}); };
  const Values x = {1, 2, 6, 5, 5, 5};
  const float deviation = std::sqrt(7.0f);
  EXPECT_THAT(Apply(rows, {2, 3}, x).ToVector<float>(), Pointwise(FloatEq(), Values{deviation, 0}));
  EXPECT_THAT(
      GradientOf(rows, {2, 3}, x),
      Pointwise(FloatEq(), Values{-1 / deviation, -0.5f / deviation, 1.5f / deviation, 0, 0, 0}));
  EXPECT_TRUE(std::isnan(Apply(rows, {1, 2}, {1, NAN}).ToVector<float>()[0]));
}

}  // namespace
}  // namespace skiff
