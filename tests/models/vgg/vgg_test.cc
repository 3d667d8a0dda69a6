#include "models/vgg/vgg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "tests/harness/classifier_workload.h"
#include "tests/harness/pass_check.h"
#include "tests/models/common/short_training.h"

namespace skiff::models {
namespace {

using harness::ClassifierWorkload;
using harness::FaultsOfEveryPass;
using ::testing::HasSubstr;

struct Network {
  std::vector<int64_t> output_dims;
  int64_t parameters = 0;
  int64_t filters = 0;  // of all convolutions
  int64_t layers_with_weights = 0;
  int64_t dropouts = 0;
};

Network Build(const VggOptions& options, int64_t extent) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable image = layers::Data("image", {-1, 3, extent, extent});
  Network network;
  network.output_dims = Vgg(image, options).dims();
  for (const auto& var : main.root()->vars()) {
    if (var->is_parameter && var->trainable) network.parameters += ElementCount(var->dims);
  }
  for (const auto& op : main.root()->ops()) {
    const bool convolution = op->type == "conv2d";
    if (convolution) network.filters += main.root()->GetVar(op->Output("Output")[0])->dims[1];
    network.layers_with_weights += convolution || op->type == "mul";
    network.dropouts += op->type == "dropout";
  }
  return network;
}

TEST(Vgg, HasTheParametersOfThePaper) {
  // The numbers of torchvision's vgg11_bn … vgg19_bn, whose convolutions also have biases, one per
  // filter.
  const auto with_biases = [](int32_t depth) {
    const Network network = Build({.depth = depth, .classes = 1000}, 224);
    EXPECT_EQ(network.layers_with_weights, depth);
    EXPECT_EQ(network.dropouts, 2);
    return network.parameters + network.filters;
  };
  EXPECT_EQ(with_biases(11), 132868840);
  EXPECT_EQ(with_biases(13), 133053736);
  EXPECT_EQ(with_biases(16), 138365992);
  EXPECT_EQ(with_biases(19), 143678248);
}

TEST(Vgg, TakesTheSmallHeadForSmallImages) {
  for (const int32_t depth : VggDepths()) {
    const Network network = Build({.depth = depth}, 32);
    // The layers of 4096 units are left out.
    EXPECT_EQ(network.layers_with_weights, depth - 2);
    EXPECT_EQ(network.dropouts, 0);
    EXPECT_EQ(network.output_dims, (std::vector<int64_t>{-1, 10}));
  }
  const int64_t small = Build({.depth = 11, .head = VggHead::kSmall}, 64).parameters;
  // The last stage leaves 2 x 2 pixels of 512 channels.
  EXPECT_EQ(small - Build({.depth = 11}, 32).parameters, 3 * 512 * 10);
  EXPECT_GT(Build({.depth = 11}, 64).parameters, small);
}

TEST(Vgg, RefusesUnknownDepthsAndImagesThatFiveStagesLeaveNothingOf) {
  EXPECT_THROW(Build({.depth = 12}, 32), Error);
  try {
    Build({.depth = 11}, 31);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("dims [-1, 3, 31, 31]: expected"));
  }
}

BuildLogits Vgg11() {
  return [](const Variable& image, int64_t classes) {
    return Vgg(image, {.depth = 11, .classes = classes});
  };
}

TEST(Vgg, AFewStepsLowerTheLoss) {
  const ShortTraining training = TrainShortly(
      Vgg11(),
      {.images = {.images = 8},
       .optimization = {.learning_rate = 0.01f, .schedule = training::ScheduleKind::kConstant},
       .steps = 11});
  EXPECT_LT(training.losses.back(), 0.7f * training.losses.front());
}

TEST(Vgg, KeepsItsResultsWithEveryPass) {
  EXPECT_THAT(FaultsOfEveryPass(ClassifierWorkload({.name = "vgg11",
                                                    .channels = 3,
                                                    .extent = 32,
                                                    .logits = Vgg11(),
                                                    .batch_size = 2,
                                                    .brief = true})),
              ::testing::IsEmpty());
}

}  // namespace
}  // namespace skiff::models
