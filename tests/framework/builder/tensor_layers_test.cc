#include "framework/builder/tensor_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/variable_operators.h"
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

TEST(FullLike, TakesShapeAndDType) {
  EXPECT_THAT(ResultOf([] { return layers::FullLike(layers::Range(0, 3), 7); }).ToVector<int64_t>(),
              ElementsAre(7, 7, 7));
  const auto like = [](DType dtype, double value) {
    return ResultOf([=] { return layers::FullLike(layers::Range(0, 2), value, dtype); });
  };
  EXPECT_THAT(like(DType::kFloat32, 0.1).ToVector<float>(), ElementsAre(0.1f, 0.1f));
  // More digits than a float has.
  EXPECT_THAT(like(DType::kFloat64, 0.1).ToVector<double>(), ElementsAre(0.1, 0.1));
  EXPECT_THAT(like(DType::kInt64, 16777217).ToVector<int64_t>(), ElementsAre(16777217, 16777217));
  EXPECT_THAT(InvalidArgumentText([&] { like(DType::kInt32, 0.1); }),
              HasSubstr("fill_any_like: 0.1 is no whole number that int32 can hold"));
}

// Layers of feeds whose dims only a run knows.
class UnknownDimsTest : public ::testing::Test {
 protected:
  void SetUp() override { main_.seed = 7; }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  Executor executor_;
};

TEST_F(UnknownDimsTest, DrawsForTheBatchOfEachRun) {
  const Variable x = layers::Data("x", {-1, 50, -1});
  const Variable uniform = layers::UniformRandomLike(x, {.low = 2, .high = 4});
  const Variable normal = layers::GaussianRandomLike(x, {.mean = 1, .stddev = 2});
  EXPECT_THAT(normal.dims(), ElementsAre(-1, 50, -1));
  EXPECT_TRUE(normal.var().stop_gradient);
  CompiledProgram compiled = executor_.Compile(main_);
  for (const int64_t batch : {30, 70}) {
    const std::vector<Tensor> drawn =
        compiled.Run({{"x", Tensor({batch, 50, 2}, DType::kFloat32)}}, {uniform, normal});
    EXPECT_EQ(drawn[0].shape(), (Shape{batch, 50, 2}));
    EXPECT_EQ(drawn[1].shape(), (Shape{batch, 50, 2}));
    EXPECT_THAT(drawn[0].ToVector<float>(), Each(Ge(2)));
    EXPECT_THAT(drawn[0].ToVector<float>(), Each(Lt(4)));
    EXPECT_NEAR(MeanOf(drawn[0].ToVector<float>()), 3, 0.1);
    EXPECT_NEAR(MeanOf(drawn[1].ToVector<float>()), 1, 0.2);
    EXPECT_NEAR(DeviationOf(drawn[1].ToVector<float>()), 2, 0.1);
  }
}

TEST_F(UnknownDimsTest, DrawsOtherNumbersInEachTrainingStepUnlessItHasASeed) {
  const Variable x = layers::Data("x", {-1, 4});
  const Variable noise = layers::GaussianRandomLike(x);
  const Variable same = layers::GaussianRandomLike(x, {.seed = 5});
  optimizer::Sgd().Minimize(layers::Mean(layers::Fc(x + noise + same, 1)));
  executor_.Run(startup_);
  CompiledProgram compiled = executor_.Compile(main_);
  const FeedList feed = {{"x", Tensor({9, 4}, DType::kFloat32)}};
  const std::vector<Tensor> first = compiled.Run(feed, {noise, same});
  const std::vector<Tensor> second = compiled.Run(feed, {noise, same});
  EXPECT_NE(first[0].ToVector<float>(), second[0].ToVector<float>());
  EXPECT_EQ(first[1].ToVector<float>(), second[1].ToVector<float>());
}

TEST_F(UnknownDimsTest, TakesTheDTypeAndRefusesWholeNumbers) {
  EXPECT_EQ(layers::UniformRandomLike(layers::Data("x", {-1}, DType::kFloat64)).dtype(),
            DType::kFloat64);
  const Variable ids = layers::Data("ids", {-1}, DType::kInt64);
  EXPECT_THAT(ErrorText([&] { layers::UniformRandomLike(ids); }),
              HasSubstr("dtype is int64, expected float32 or float64"));
}

TEST(TakeAlongAxis, PicksOneOfEachRow) {
  const Tensor taken = ResultOf([] {
    const Variable x = layers::AssignValue({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
    const Variable index = layers::AssignValue({2, 1}, std::vector<int64_t>{2, 0});
    const Variable taken = layers::TakeAlongAxis(x, index, -1);
    taken.StopGradient();
    return taken;
  });
  EXPECT_EQ(taken.shape(), Shape({2, 1}));
  EXPECT_THAT(taken.ToVector<float>(), ElementsAre(3, 4));
}

TEST(PutAlongAxis, AssignsAddsAndMultiplies) {
  const auto put = [](const std::string& reduce) {
    return ResultOf([&] {
             const Variable x = layers::AssignValue({2, 2}, std::vector<float>{1, 2, 3, 4});
             const Variable index = layers::AssignValue({2, 2}, std::vector<int64_t>{1, 1, 0, 1});
             const Variable value = layers::AssignValue({2, 2}, std::vector<float>{5, 6, 7, 8});
             const Variable result = layers::PutAlongAxis(x, index, value, 1, reduce);
             result.StopGradient();
             return result;
           })
        .ToVector<float>();
  };
  EXPECT_THAT(put("assign"), ElementsAre(1, 6, 7, 8));
  EXPECT_THAT(put("add"), ElementsAre(1, 13, 10, 12));
  EXPECT_THAT(put("mul"), ElementsAre(1, 60, 21, 32));
}

TEST(PutAlongAxis, TakesANumber) {
  EXPECT_THAT(ResultOf([] {
                const Variable x = layers::AssignValue({3}, std::vector<float>{1, 2, 3});
                const Variable index = layers::AssignValue({2}, std::vector<int64_t>{0, 2});
                const Variable result = layers::PutAlongAxis(x, index, -1, 0);
                result.StopGradient();
                return result;
              }).ToVector<float>(),
              ElementsAre(-1, 2, -1));
}

TEST_F(UnknownDimsTest, RepeatInterleaveRepeatsEachSlice) {
  const Variable x = layers::Data("x", {-1, 2});
  const Variable rows = layers::RepeatInterleave(x, 2, 0);
  const Variable columns = layers::RepeatInterleave(x, 3, -1);
  EXPECT_THAT(columns.dims(), ElementsAre(-1, 6));
  const std::vector<Tensor> repeated = executor_.Compile(main_).Run(
      {{"x", Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4})}}, {rows, columns});
  EXPECT_EQ(repeated[0].shape(), Shape({4, 2}));
  EXPECT_THAT(repeated[0].ToVector<float>(), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_THAT(repeated[1].ToVector<float>(), ElementsAre(1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4));
  EXPECT_THAT(InvalidArgumentText([&] { layers::RepeatInterleave(x, 0, 0); }),
              HasSubstr("repeat_interleave: times = 0, expected at least 1"));
}

TEST(SetValue, PutsNumbersAndTensorsToASlice) {
  const auto zeros = [] { return layers::AssignValue({2, 3}, std::vector<float>(6, 0)); };
  EXPECT_THAT(ResultOf([&] {
                return layers::Detach(
                    layers::SetValue(zeros(), 5.0, {.axes = {1}, .starts = {-2}, .ends = {3}}));
              }).ToVector<float>(),
              ElementsAre(0, 5, 5, 0, 5, 5));
  EXPECT_THAT(ResultOf([&] {
                const Variable value = layers::AssignValue({2}, std::vector<float>{1, 2});
                return layers::Detach(layers::SetValue(zeros(), value,
                                                       {.axes = {0, -1},
                                                        .starts = {1, 2},
                                                        .ends = {2, -1},
                                                        .steps = {1, -2},
                                                        .decrease_axes = {0}}));
              }).ToVector<float>(),
              ElementsAre(0, 0, 0, 2, 0, 1));
  const auto half_of_integers = [] {
    layers::SetValue(layers::Range(0, 3), 0.5, {.axes = {0}, .starts = {0}, .ends = {1}});
  };
  EXPECT_THAT(InvalidArgumentText([&] {
                ResultOf([&] {
                  half_of_integers();
                  return layers::Range(0, 3);
                });
              }),
              HasSubstr("0.5 isn't whole"));
}

TEST_F(UnknownDimsTest, SetValueTakesWholeNumbersThatADoubleTells) {
  const auto set = [](DType dtype, double value) {
    const Variable x = layers::FillConstant({2}, dtype, 0);
    return layers::SetValue(x, value, {.axes = {0}, .starts = {1}, .ends = {2}});
  };
  const FetchList set_ends = {set(DType::kInt64, 1 - 0x1p53), set(DType::kInt32, -0x1p31)};
  const std::vector<Tensor> made = executor_.Compile(main_).Run({}, set_ends);
  EXPECT_THAT(made[0].ToVector<int64_t>(), ElementsAre(0, 1 - (int64_t{1} << 53)));
  EXPECT_THAT(made[1].ToVector<int32_t>(), ElementsAre(0, std::numeric_limits<int32_t>::min()));
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [dtype, value] : std::vector<std::pair<DType, double>>{{DType::kInt64, 0x1p53},
                                                                          {DType::kInt64, -1e300},
                                                                          {DType::kInt64, infinity},
                                                                          {DType::kInt32, 0x1p31},
                                                                          {DType::kBool, 2}}) {
    EXPECT_THAT(InvalidArgumentText([&] { set(dtype, value); }), HasSubstr("doesn't fit"))
        << dtype << " " << value;
  }
  EXPECT_THAT(InvalidArgumentText([&] { set(DType::kInt64, std::nan("")); }),
              HasSubstr("the value nan isn't whole"));
}

TEST_F(UnknownDimsTest, ExpandAsTakesTheDimsOfARun) {
  const Variable row = layers::AssignValue({1, 2}, std::vector<float>{7, 8});
  const Variable out = layers::ExpandAs(row, layers::Data("x", {-1, 2}));
  EXPECT_EQ(out.dims(), (std::vector<int64_t>{-1, 2}));
  const FeedList feed = {{"x", Tensor({3, 2}, DType::kFloat32)}};
  EXPECT_THAT(executor_.Compile(main_).Run(feed, {out})[0].ToVector<float>(),
              ElementsAre(7, 8, 7, 8, 7, 8));
}

TEST(Pad2d, TakesTheOtherEndOfACircle) {
  EXPECT_THAT(
      ResultOf([] {
        const Variable x = layers::AssignValue({1, 1, 2, 2}, std::vector<float>{1, 2, 3, 4});
        return layers::Detach(layers::Pad2d(x, {.paddings = {1, 0, 0, 1}, .mode = "circular"}));
      }).ToVector<float>(),
      ElementsAre(3, 4, 3, 1, 2, 1, 3, 4, 3));
}

TEST_F(UnknownDimsTest, CircularPad2dRefusesWhatItDoesNotTake) {
  const Variable x = layers::Data("x", {-1, 2, 3, 4});
  EXPECT_THAT(InvalidArgumentText([&] {
                layers::Pad2d(x, {.paddings = {1, 1, 1}, .mode = "circular"});
              }),
              HasSubstr("pad2d: \"x\" of shape [-1, 2, 3, 4] and 3 paddings"));
  EXPECT_THAT(
      InvalidArgumentText([&] {
        layers::Pad2d(x, {.paddings = {1, 1, 1, 1}, .mode = "circular", .data_format = "NCWH"});
      }),
      HasSubstr("pad2d: data_format = \"NCWH\", expected NCHW or NHWC"));
  EXPECT_THAT(
      InvalidArgumentText([&] {
        layers::Pad2d(layers::Data("flat", {3, 4}), {.paddings = {1, 1, 1, 1}, .mode = "circular"});
      }),
      HasSubstr("pad2d: \"flat\" of shape [3, 4] and 4 paddings"));
}

TEST(Pad3d, BeginsWithTheColumns) {
  const Tensor out = ResultOf([] {
    const Variable x = layers::AssignValue({1, 1, 1, 1, 2}, std::vector<float>{1, 2});
    return layers::Detach(layers::Pad3d(x, {.paddings = {1, 0, 0, 0, 0, 1}, .mode = "replicate"}));
  });
  EXPECT_EQ(out.shape(), Shape({1, 1, 2, 1, 3}));
  EXPECT_THAT(out.ToVector<float>(), ElementsAre(1, 1, 2, 1, 1, 2));
}

TEST_F(UnknownDimsTest, Pad1dExtendsSequences) {
  const Variable x = layers::Data("x", {-1, 2, 3});
  const Variable zeros = layers::Pad1d(x, {.paddings = {1, 2}});
  const Variable mirrored = layers::Pad1d(x, {.paddings = {2, 1}, .mode = "reflect"});
  EXPECT_THAT(zeros.dims(), ElementsAre(-1, 2, 6));
  const std::vector<Tensor> padded = executor_.Compile(main_).Run(
      {{"x", Tensor::FromValues<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6})}}, {zeros, mirrored});
  EXPECT_THAT(padded[0].ToVector<float>(), ElementsAre(0, 1, 2, 3, 0, 0, 0, 4, 5, 6, 0, 0));
  EXPECT_THAT(padded[1].ToVector<float>(), ElementsAre(3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5));
  EXPECT_THAT(
      InvalidArgumentText([&] {
        layers::Pad1d(x, {.paddings = {1, 2, 3, 4}});
      }),
      HasSubstr("pad1d: \"x\" of shape [-1, 2, 3] and 4 paddings, expected [N, C, L] and 2"));
}

}  // namespace
}  // namespace skiff
