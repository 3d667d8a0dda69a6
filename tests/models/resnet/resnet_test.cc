#include "models/resnet/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

struct Network {
  std::vector<int64_t> output_dims;
  int64_t parameters = 0;
  int64_t convolutions = 0;
};

Network Build(const ResNetOptions& options, int64_t extent) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable image = layers::Data("image", {-1, 3, extent, extent});
  Network network;
  network.output_dims = ResNet(image, options).dims();
  for (const auto& var : main.root()->vars()) {
    if (var->is_parameter && var->trainable) network.parameters += ElementCount(var->dims);
  }
  for (const auto& op : main.root()->ops()) network.convolutions += op->type == "conv2d";
  return network;
}

TEST(ResNet, HasTheParametersOfThePaper) {
  // Those of torchvision's resnet18 … resnet101.
  EXPECT_EQ(Build({.depth = 18, .classes = 1000}, 224).parameters, 11689512);
  EXPECT_EQ(Build({.depth = 34, .classes = 1000}, 224).parameters, 21797672);
  EXPECT_EQ(Build({.depth = 50, .classes = 1000}, 224).parameters, 25557032);
  EXPECT_EQ(Build({.depth = 101, .classes = 1000}, 224).parameters, 44549160);
}

TEST(ResNet, SmallNetworksHaveSixNPlusTwoLayers) {
  for (const int32_t depth : {20, 32, 44, 56, 110}) {
    const Network network = Build({.depth = depth}, 32);
    // Two shortcuts are convolutions as well; the last layer isn't one.
    EXPECT_EQ(network.convolutions, depth - 1 + 2) << depth;
    EXPECT_EQ(network.output_dims, (std::vector<int64_t>{-1, 10}));
  }
  // 270 thousand in table 6 of the paper, and the two projections.
  EXPECT_EQ(Build({.depth = 20}, 32).parameters, 272474);
}

TEST(ResNet, TakesTheSmallStemForSmallImages) {
  const int64_t weights_apart = 64 * 3 * (7 * 7 - 3 * 3);
  EXPECT_EQ(Build({.depth = 18}, 224).parameters - Build({.depth = 18}, 32).parameters,
            weights_apart);
  EXPECT_EQ(Build({.depth = 18, .stem = ResNetStem::kSmall}, 224).parameters,
            Build({.depth = 18}, 32).parameters);
}

TEST(ResNet, RefusesUnknownDepths) { EXPECT_THROW(Build({.depth = 21}, 32), Error); }

TEST(ResNet, AFewStepsLowerTheLoss) {
  const ImageDataset images = GenerateImages({.images = 16, .height = 16, .width = 16});
  const ClassifierProgram program = BuildClassifier(
      images,
      [](const Variable& image, int64_t classes) {
        return ResNet(image, {.depth = 20, .classes = classes});
      },
      {.learning_rate = 0.05f, .schedule = ScheduleKind::kConstant}, 1);
  Executor executor;
  executor.Run(*program.startup);
  Tensor input({16, 3, 16, 16}, DType::kFloat32);
  const Normalization normalization = MeasureNormalization(images);
  for (int64_t i = 0; i < 16; ++i) {
    const int64_t elements = images.image_elements();
    WriteImage(images, i, normalization, {}, input.values<float>().subspan(i * elements, elements));
  }
  const Tensor label = Tensor::FromValues<int64_t>({16, 1}, images.labels);
  CompiledProgram step = executor.Compile(*program.main);
  BoundProgram bound = step.Bind({{program.image, input}, {program.label, label}}, {program.loss});
  bound.Step();
  const float first = bound.fetch(0).Item<float>();
  for (int i = 0; i < 10; ++i) bound.Step();
  EXPECT_LT(bound.fetch(0).Item<float>(), 0.7f * first);
}

}  // namespace
}  // namespace skiff::models
