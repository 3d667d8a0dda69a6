#include <gtest/gtest.h>

#include <string>

#include "framework/base/element_count.h"
#include "framework/builder/activation.h"
#include "framework/builder/nn.h"
#include "framework/builder/variable_operators.h"
#include "framework/transpiler/replay_activation_pass.h"
#include "tests/framework/transpiler/bound_network.h"

namespace skiff {
namespace {

const Shape kImage = {4, 8, 16, 16};

Variable ConvNormRelu(const Variable& x) {
  const Variable y =
      layers::Conv2d(x, {.filters = 8, .kernel = 3, .padding = 1, .bias_attr = false});
  return layers::BatchNorm(y, {.act = "relu"});
}

Variable Chain(const Variable& image) {
  Variable x = image;
  for (int i = 0; i < 6; ++i) x = ConvNormRelu(x);
  return x;
}

// The last activation is read by the mean, whose gradient needs its shape alone.
TEST(ReplayActivationPass, ReplaysWhatBackwardConvolutionsRead) {
  const BoundNetwork network(Chain);
  EXPECT_EQ(network.Count("batch_norm_replay"), 5);
}

TEST(ReplayActivationPass, ReplaysANormWithoutARelu) {
  const BoundNetwork network([](const Variable& x) {
    const Variable y =
        layers::Conv2d(x, {.filters = 8, .kernel = 3, .padding = 1, .bias_attr = false});
    return ConvNormRelu(layers::BatchNorm(y));
  });
  EXPECT_EQ(network.Count("batch_norm"), 1);
  EXPECT_EQ(network.Count("batch_norm_replay"), 1);
}

// At the end of the forward pass all five are gone but the one in use.
TEST(ReplayActivationPass, KeepsFourActivationsLess) {
  const auto live = [](const BoundNetwork& network) { return network.statistics().max_live_bytes; };
  const BoundNetwork kept(Chain, {.image = kImage, .skip = {"replay_activation", "layout"}});
  const BoundNetwork replayed(Chain, {.image = kImage, .skip = {"layout"}});
  const int64_t activation_bytes = ByteCount(kImage.element_count(), DType::kFloat32);
  EXPECT_GE(live(kept) - live(replayed), 4 * activation_bytes);
}

TEST(ReplayActivationPass, ReplaysNothingWithoutABackwardPass) {
  EXPECT_EQ(BoundNetwork(Chain, {.trains = false}).Count("batch_norm_replay"), 0);
}

TEST(ReplayActivationPass, LeavesWhatIsFetched) {
  std::string name;
  const auto network = [&](const Variable& x) {
    const Variable y = ConvNormRelu(x);
    name = y.name();
    return ConvNormRelu(y);
  };
  EXPECT_EQ(BoundNetwork(network).Count("batch_norm_replay"), 1);
  EXPECT_EQ(BoundNetwork(network, {.fetches = {name}}).Count("batch_norm_replay"), 0);
}

TEST(ReplayActivationPass, LeavesWhatSomethingWasAddedTo) {
  const BoundNetwork network([](const Variable& x) {
    const Variable y =
        layers::Conv2d(x, {.filters = 3, .kernel = 3, .padding = 1, .bias_attr = false});
    return ConvNormRelu(layers::Relu(layers::BatchNorm(y) + x));
  });
  EXPECT_EQ(network.Count("batch_norm_act"), 2);
  EXPECT_EQ(network.Count("batch_norm_replay"), 0);
}

TEST(ReplayActivationPass, LeavesWhatANormWithoutAConvolutionReads) {
  const BoundNetwork network([](const Variable& x) {
    return ConvNormRelu(layers::BatchNorm(ConvNormRelu(x), {.act = "relu"}));
  });
  EXPECT_EQ(network.Count("batch_norm_act"), 3);
  // Of the first two, the second reads the first.
  EXPECT_EQ(network.Count("batch_norm_replay"), 1);
}

TEST(ReplayActivationPass, LeavesWhatReadsAScaleThatChanges) {
  const auto overwrite = [](Program* program) {
    Block* root = program->root();
    std::string scale;
    for (size_t i = 0; i < root->ops().size(); ++i) {
      if (scale.empty() && root->ops()[i]->type == "batch_norm") {
        scale = root->ops()[i]->Input("Scale")[0];
      }
      if (root->ops()[i]->type != "mean") continue;
      Op op("scale");
      op.SetInput("X", {scale}).SetOutput("Out", {scale}).SetAttr("scale", 2.0f);
      root->InsertOp(i, op);
      return;
    }
  };
  const auto network = [](const Variable& x) { return ConvNormRelu(ConvNormRelu(x)); };
  EXPECT_EQ(BoundNetwork(network).Count("batch_norm_replay"), 1);
  EXPECT_EQ(BoundNetwork(network, {.edit = overwrite}).Count("batch_norm_replay"), 0);
}

}  // namespace
}  // namespace skiff
