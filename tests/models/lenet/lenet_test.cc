#include "models/lenet/lenet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "framework/base/error.h"
#include "tests/harness/classifier_workload.h"
#include "tests/harness/pass_check.h"
#include "tests/models/common/short_training.h"

namespace skiff::models {
namespace {

using harness::ClassifierWorkload;
using harness::FaultsOfEveryPass;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LeNet, HasTheParametersOfThePaper) {
  // 156 + 2416 + 48120 + 10164 + 850, with every map of the second convolution connected to all of
  // the first.
  const NetworkShape shape = ShapeOf(LeNet, {-1, 1, 28, 28});
  EXPECT_EQ(shape.parameters, 61706);
  EXPECT_EQ(shape.ops.at("conv2d"), 2);
  EXPECT_EQ(shape.ops.at("pool2d"), 2);
  EXPECT_THAT(shape.output_dims, ElementsAre(-1, 10));
}

TEST(LeNet, TakesOtherChannelsAndExtents) {
  // Filters of 5 x 5 for two more channels; 8 x 8 pixels of 16 maps before the first layer of 120.
  const int64_t filters = 6 * 2 * 5 * 5;
  const int64_t connections = (8 * 8 - 5 * 5) * 16 * 120;
  EXPECT_EQ(ShapeOf(LeNet, {-1, 3, 40, 40}).parameters, 61706 + filters + connections);
  EXPECT_THAT(ShapeOf(LeNet, {5, 1, 12, 30}).output_dims, ElementsAre(5, 10));
}

TEST(LeNet, RefusesImagesThatTwoPoolingsLeaveNothingOf) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{-1, 1, 11, 28}, {-1, 1, 28, 11}}) {
    try {
      ShapeOf(LeNet, dims);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("extents of at least 12"));
    }
  }
  EXPECT_THROW(ShapeOf(LeNet, {-1, 784}), Error);
}

TEST(LeNet, LearnsAFewImagesByHeart) {
  const ShortTraining training = TrainShortly(LeNet, {.steps = 40});
  // With ten classes, the loss begins near log(10).
  EXPECT_GT(training.losses.front(), 1.5f);
  EXPECT_LT(training.losses.back(), 0.05f);
}

TEST(LeNet, RepeatsItsWeightsForOneSeed) {
  const ShortTraining first = TrainShortly(LeNet, {.steps = 5});
  const ShortTraining again = TrainShortly(LeNet, {.steps = 5});
  EXPECT_EQ(first.losses, again.losses);
  EXPECT_EQ(first.weights_hash, again.weights_hash);
  EXPECT_NE(first.weights_hash, TrainShortly(LeNet, {.steps = 5, .seed = 2}).weights_hash);
}

TEST(LeNet, KeepsItsResultsWithEveryPass) {
  EXPECT_THAT(FaultsOfEveryPass(ClassifierWorkload({.name = "lenet", .logits = LeNet})), IsEmpty());
}

TEST(LeNet, KeepsItsResultsWithEveryPassUnderAdam) {
  EXPECT_THAT(FaultsOfEveryPass(ClassifierWorkload({.name = "lenet",
                                                    .logits = LeNet,
                                                    .optimizer = "adam",
                                                    .schedule = training::ScheduleKind::kCosine})),
              IsEmpty());
}

}  // namespace
}  // namespace skiff::models
