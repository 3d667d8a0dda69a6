#include "models/mlp/mlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"
#include "tests/harness/classifier_workload.h"
#include "tests/harness/error_text.h"
#include "tests/harness/pass_check.h"
#include "tests/models/common/short_training.h"

namespace skiff::models {
namespace {

using harness::ClassifierWorkload;
using harness::FaultsOfEveryPass;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

BuildLogits Network(MlpOptions options) {
  return [options](const Variable& image, int64_t classes) {
    MlpOptions with_classes = options;
    with_classes.classes = classes;
    return Mlp(image, with_classes);
  };
}

TEST(Mlp, HasAMatrixAndABiasForEachLayer) {
  const NetworkShape shape = ShapeOf(Network({}), {-1, 1, 28, 28});
  EXPECT_EQ(shape.parameters, (784 + 1) * 256 + (256 + 1) * 256 + (256 + 1) * 10);
  EXPECT_EQ(shape.ops.at("relu"), 2);
  EXPECT_FALSE(shape.ops.contains("dropout"));
  EXPECT_THAT(shape.output_dims, ElementsAre(-1, 10));
}

TEST(Mlp, WithoutHiddenLayersIsSoftmaxRegression) {
  EXPECT_EQ(ShapeOf(Network({.hidden_layers = 0}), {-1, 1, 28, 28}).parameters, (784 + 1) * 10);
}

TEST(Mlp, TakesVectors) {
  const NetworkShape shape = ShapeOf(Network({.hidden_layers = 1, .hidden_units = 7}), {4, 13});
  EXPECT_EQ(shape.parameters, (13 + 1) * 7 + (7 + 1) * 10);
  EXPECT_THAT(shape.output_dims, ElementsAre(4, 10));
}

TEST(Mlp, DropsUnitsOfEachHiddenLayer) {
  const NetworkShape shape =
      ShapeOf(Network({.hidden_layers = 3, .hidden_units = 8, .dropout = 0.5f}), {-1, 6});
  EXPECT_EQ(shape.ops.at("dropout"), 3);
}

TEST(Mlp, RefusesSizesThatAreNone) {
  const auto message = [](const MlpOptions& options) {
    return ErrorText([&] { ShapeOf(Network(options), {-1, 6}); });
  };
  EXPECT_THAT(message({.hidden_layers = -1}), HasSubstr("hidden_layers = -1, expected at least 0"));
  EXPECT_THAT(message({.hidden_units = 0}), HasSubstr("hidden_units = 0, expected at least 1"));
}

TEST(Mlp, LearnsAFewImagesByHeart) {
  const ShortTraining training = TrainShortly(Network({.hidden_units = 64}), {.steps = 40});
  EXPECT_GT(training.losses.front(), 1.5f);
  EXPECT_LT(training.losses.back(), 0.1f);
}

TEST(Mlp, RepeatsItsWeightsForOneSeedWithDropout) {
  const BuildLogits network = Network({.hidden_units = 32, .dropout = 0.3f});
  const ShortTraining first = TrainShortly(network, {.steps = 5});
  const ShortTraining again = TrainShortly(network, {.steps = 5});
  EXPECT_EQ(first.losses, again.losses);
  EXPECT_EQ(first.weights_hash, again.weights_hash);
  EXPECT_NE(first.weights_hash, TrainShortly(network, {.steps = 5, .seed = 2}).weights_hash);
}

TEST(Mlp, KeepsItsResultsWithEveryPass) {
  EXPECT_THAT(FaultsOfEveryPass(
                  ClassifierWorkload({.name = "mlp",
                                      .extent = 5,
                                      .logits = Network({.hidden_units = 20, .dropout = 0.3f}),
                                      .optimizer = "adam"})),
              IsEmpty());
}

}  // namespace
}  // namespace skiff::models
