#include "framework/builder/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Lt;

using Layer = std::function<Variable()>;

// What a layer without inputs makes.
Tensor ResultOf(const Layer& layer) {
  Program main, startup;
  main.seed = 7;
  ProgramGuard guard(&main, &startup);
  const Variable out = layer();
  EXPECT_TRUE(out.var().stop_gradient);
  Executor executor;
  return executor.Compile(main).Run({}, {out})[0];
}

double MeanOf(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double DeviationOf(const std::vector<float>& values) {
  const double mean = MeanOf(values);
  double sum = 0;
  for (const float value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(AssignValue, TakesTheDTypeOfItsValues) {
  const Tensor floats = ResultOf([] {
    return layers::AssignValue({2, 2}, std::vector<float>{1, 2, 3, 4});
  });
  EXPECT_EQ(floats.shape(), Shape({2, 2}));
  EXPECT_THAT(floats.ToVector<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(ResultOf([] {
                return layers::AssignValue({1}, std::vector<double>{0.1});
              }).ToVector<double>(),
              ElementsAre(0.1));
  EXPECT_THAT(ResultOf([] {
                return layers::AssignValue({2}, std::vector<int32_t>{-1, 5});
              }).ToVector<int32_t>(),
              ElementsAre(-1, 5));
  EXPECT_THAT(ResultOf([] {
                return layers::AssignValue({1}, std::vector<int64_t>{int64_t{1} << 53 | 1});
              }).ToVector<int64_t>(),
              ElementsAre(int64_t{1} << 53 | 1));
}

TEST(AssignValue, RefusesAnotherNumberOfValues) {
  try {
    ResultOf([] { return layers::AssignValue({2, 2}, std::vector<float>{1, 2, 3}); });
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"assign_value_0\": 3 values, expected 4"));
  }
}

TEST(Range, CountsInEitherDirection) {
  const auto values = [](int64_t start, int64_t end, int64_t step) {
    return ResultOf([&] { return layers::Range(start, end, step); }).ToVector<int64_t>();
  };
  EXPECT_THAT(values(0, 4, 1), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values(2, 9, 3), ElementsAre(2, 5, 8));
  EXPECT_THAT(values(1, -4, -2), ElementsAre(1, -1, -3));
  EXPECT_THAT(values(INT64_MAX - 3, INT64_MAX, 2), ElementsAre(INT64_MAX - 3, INT64_MAX - 1));
  EXPECT_THAT(values(INT64_MIN, INT64_MAX, INT64_MAX), ElementsAre(INT64_MIN, -1, INT64_MAX - 1));
}

TEST(Range, RefusesNoNumbersAndTooMany) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const auto message = [](int64_t start, int64_t end, int64_t step) {
    return InvalidArgumentText([&] { layers::Range(start, end, step); });
  };
  EXPECT_THAT(message(0, 4, 0), HasSubstr("range: from 0 to 4 by steps of 0 there is no number"));
  EXPECT_THAT(message(4, 0, 1), HasSubstr("there is no number"));
  EXPECT_THAT(message(INT64_MIN, INT64_MAX, 1), HasSubstr("expected at most 16777216"));
}

TEST(FillConstantBatchSizeLike, TakesTheBatchSizeOfEachRun) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 3});
  const Variable state = layers::FillConstantBatchSizeLike(x, {-1, 2}, DType::kFloat64, 0.1);
  EXPECT_THAT(state.dims(), ElementsAre(-1, 2));
  EXPECT_TRUE(state.var().stop_gradient);
  const Variable across = layers::FillConstantBatchSizeLike(
      x, {4, 1}, DType::kInt64, 7, {.input_dim_idx = 0, .output_dim_idx = 1});
  const Variable ones = layers::OnesLike(x);
  Executor executor;
  CompiledProgram compiled = executor.Compile(main);
  for (const int64_t batch : {2, 5}) {
    const std::vector<Tensor> made =
        compiled.Run({{"x", Tensor({batch, 3}, DType::kFloat32)}}, {state, across, ones});
    EXPECT_EQ(made[0].shape(), (Shape{batch, 2}));
    EXPECT_THAT(made[0].ToVector<double>(), Each(0.1));
    EXPECT_EQ(made[1].shape(), (Shape{4, batch}));
    EXPECT_THAT(made[1].ToVector<int64_t>(), Each(7));
    EXPECT_EQ(made[2].shape(), (Shape{batch, 3}));
    EXPECT_THAT(made[2].ToVector<float>(), Each(1.0f));
  }
}

TEST(UniformRandom, StaysInItsRange) {
  const Tensor drawn = ResultOf([] {
    return layers::UniformRandom({40, 50}, {.low = 2, .high = 4});
  });
  EXPECT_EQ(drawn.shape(), Shape({40, 50}));
  const std::vector<float> values = drawn.ToVector<float>();
  EXPECT_THAT(values, Each(Ge(2)));
  EXPECT_THAT(values, Each(Lt(4)));
  EXPECT_NEAR(MeanOf(values), 3, 0.1);
  EXPECT_EQ(ResultOf([] { return layers::UniformRandom({3}, {}, DType::kFloat64); }).dtype(),
            DType::kFloat64);
}

TEST(UniformRandom, DrawsOtherNumbersInAnotherPlace) {
  const Layer one = [] { return layers::UniformRandom({5}); };
  const Layer other = [] {
    layers::UniformRandom({5});
    return layers::UniformRandom({5});
  };
  EXPECT_EQ(ResultOf(one).ToVector<float>(), ResultOf(one).ToVector<float>());
  EXPECT_NE(ResultOf(one).ToVector<float>(), ResultOf(other).ToVector<float>());
}

TEST(GaussianRandom, HasItsMeanAndDeviation) {
  const std::vector<float> values =
      ResultOf([] {
        return layers::GaussianRandom({5000}, {.mean = 1, .stddev = 2});
      }).ToVector<float>();
  EXPECT_NEAR(MeanOf(values), 1, 0.15);
  EXPECT_NEAR(DeviationOf(values), 2, 0.1);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 5);
}

TEST(TruncatedGaussianRandom, StaysWithinTwoDeviations) {
  const std::vector<float> values =
      ResultOf([] {
        return layers::TruncatedGaussianRandom({5000}, {.mean = 1, .stddev = 2});
      }).ToVector<float>();
  EXPECT_NEAR(MeanOf(values), 1, 0.15);
  EXPECT_THAT(values, Each(Ge(-3)));
  EXPECT_THAT(values, Each(Le(5)));
}

}  // namespace
}  // namespace skiff
