#include "models/resnet/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "framework/analysis/contiguous_values.h"
#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "tests/harness/classifier_workload.h"
#include "tests/harness/pass_check.h"
#include "tests/models/common/short_training.h"

namespace skiff::models {
namespace {

using harness::ClassifierWorkload;
using harness::FaultsOfEveryPass;

NetworkShape Build(const ResNetOptions& options, int64_t extent) {
  return ShapeOf([&](const Variable& image, int64_t) { return ResNet(image, options); },
                 {-1, 3, extent, extent});
}

TEST(ResNet, HasTheParametersOfThePaper) {
  // The numbers of torchvision's resnet18 … resnet101.
  EXPECT_EQ(Build({.depth = 18, .classes = 1000}, 224).parameters, 11689512);
  EXPECT_EQ(Build({.depth = 34, .classes = 1000}, 224).parameters, 21797672);
  EXPECT_EQ(Build({.depth = 50, .classes = 1000}, 224).parameters, 25557032);
  EXPECT_EQ(Build({.depth = 101, .classes = 1000}, 224).parameters, 44549160);
}

TEST(ResNet, SmallNetworksHaveSixNPlusTwoLayers) {
  for (const int32_t depth : {20, 32, 44, 56, 110}) {
    const NetworkShape network = Build({.depth = depth}, 32);
    // The depth counts the last layer, but not the two shortcuts that are convolutions.
    EXPECT_EQ(network.ops.at("conv2d"), depth - 1 + 2) << depth;
    EXPECT_EQ(network.output_dims, (std::vector<int64_t>{-1, 10}));
  }
  // 270 thousand in table 6 of the paper, plus the two projections.
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

BuildLogits Network(const ResNetOptions& options) {
  return [options](const Variable& image, int64_t classes) {
    ResNetOptions with_classes = options;
    with_classes.classes = classes;
    return ResNet(image, with_classes);
  };
}

ShortTraining TrainSmallImages(int steps, uint64_t seed) {
  return TrainShortly(
      Network({.depth = 20}),
      {.images = {.images = 16, .height = 16, .width = 16},
       .optimization = {.learning_rate = 0.05f, .schedule = training::ScheduleKind::kConstant},
       .steps = steps,
       .seed = seed});
}

TEST(ResNet, AFewStepsLowerTheLoss) {
  const ShortTraining training = TrainSmallImages(11, 1);
  EXPECT_LT(training.losses.back(), 0.7f * training.losses.front());
}

TEST(ResNet, RepeatsItsWeightsForOneSeed) {
  const ShortTraining first = TrainSmallImages(3, 1);
  const ShortTraining again = TrainSmallImages(3, 1);
  EXPECT_EQ(first.losses, again.losses);
  EXPECT_EQ(first.weights_hash, again.weights_hash);
  EXPECT_NE(first.weights_hash, TrainSmallImages(3, 2).weights_hash);
}

TEST(ResNet, KeepsItsResultsWithEveryPass) {
  EXPECT_THAT(FaultsOfEveryPass(ClassifierWorkload({.name = "resnet20",
                                                    .channels = 3,
                                                    .extent = 8,
                                                    .logits = Network({.depth = 20}),
                                                    .schedule = training::ScheduleKind::kStep})),
              ::testing::IsEmpty());
}

// Convolutions, batch norms and the last layer write each gradient where the update reads it.
TEST(ResNet, LiesFlatWithAllItsGradients) {
  for (const char* optimizer : {"momentum", "adam"}) {
    const harness::Workload workload = ClassifierWorkload({.name = "resnet20",
                                                           .channels = 3,
                                                           .extent = 8,
                                                           .logits = Network({.depth = 20}),
                                                           .optimizer = optimizer,
                                                           .brief = true});
    const Program& program = *workload.programs[0];
    const auto parameters = std::ranges::count_if(program.root()->vars(), [](const auto& var) {
      return var->is_parameter && var->trainable;
    });
    Executor executor(Place::Cpu());
    executor.Run(*workload.startup);
    const auto plan_of = [&](const CompileOptions& options) {
      const harness::WorkloadRun& run = workload.runs[0];
      return executor.Compile(program, options).Bind(run.feeds, run.fetches).plan();
    };
    const Plan plan = plan_of({.passes = {.also = {"fuse_optimizer", "flatten_parameters"}}});
    const std::vector<std::vector<ContiguousSlice>> lists = ContiguousSlices(plan);
    ASSERT_EQ(lists.size(), 1U);
    EXPECT_EQ(lists[0].size(), static_cast<size_t>(parameters));
    for (const ContiguousSlice& slice : lists[0]) {
      EXPECT_EQ(plan[slice.root].offset - plan[lists[0][0].root].offset, slice.offset);
    }
    const auto copies = [](const Plan& of) {
      return std::ranges::count(of.instructions, InstructionKind::kCopy, &Instruction::kind);
    };
    EXPECT_EQ(copies(plan), copies(plan_of({})));
  }
}

}  // namespace
}  // namespace skiff::models
