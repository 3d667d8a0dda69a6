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
#include "framework/executor/executor.h"
#include "models/common/augmentation.h"
#include "models/common/classifier_program.h"
#include "models/common/generated_images.h"

namespace skiff::models {
namespace {

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
  // Those of torchvision's vgg11_bn … vgg19_bn, whose convolutions have a bias.
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

TEST(Vgg, AFewStepsLowerTheLoss) {
  constexpr int64_t kImages = 8;
  const ImageDataset images = GenerateImages({.images = kImages, .height = 32, .width = 32});
  const ClassifierProgram program = BuildClassifier(
      images,
      [](const Variable& image, int64_t classes) {
        return Vgg(image, {.depth = 11, .classes = classes});
      },
      {.learning_rate = 0.01f, .schedule = ScheduleKind::kConstant}, 1);
  Executor executor;
  executor.Run(*program.startup);
  Tensor input({kImages, 3, 32, 32}, DType::kFloat32);
  const Normalization normalization = MeasureNormalization(images);
  for (int64_t i = 0; i < kImages; ++i) {
    const int64_t elements = images.image_elements();
    WriteImage(images, i, normalization, {}, input.values<float>().subspan(i * elements, elements));
  }
  const Tensor label = Tensor::FromValues<int64_t>({kImages, 1}, images.labels);
  CompiledProgram step = executor.Compile(*program.main);
  BoundProgram bound = step.Bind({{program.image, input}, {program.label, label}}, {program.loss});
  bound.Step();
  const float first = bound.fetch(0).Item<float>();
  for (int i = 0; i < 10; ++i) bound.Step();
  EXPECT_LT(bound.fetch(0).Item<float>(), 0.7f * first);
}

}  // namespace
}  // namespace skiff::models
