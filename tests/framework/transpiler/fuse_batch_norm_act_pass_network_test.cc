#include <gtest/gtest.h>

#include <string>

#include "framework/builder/activation.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/transpiler/fuse_batch_norm_act_pass.h"
#include "tests/framework/transpiler/bound_network.h"

namespace skiff {
namespace {

Variable Conv(const Variable& x) {
  return layers::Conv2d(x, {.filters = 3, .kernel = 3, .padding = 1, .bias_attr = std::nullopt});
}

Variable NormRelu(const Variable& x) { return layers::Relu(layers::BatchNorm(Conv(x))); }

void ExpectFused(const BoundNetwork& network, int64_t forward, int64_t backward) {
  EXPECT_EQ(network.Count("fused_batch_norm_act"), forward);
  EXPECT_EQ(network.Count("fused_batch_norm_act_grad"), backward);
}

TEST(FuseBatchNormActPass, FusesANormAndItsRelu) {
  const BoundNetwork network(NormRelu);
  ExpectFused(network, 1, 1);
  for (const char* gone : {"batch_norm", "relu", "batch_norm_grad", "relu_grad"}) {
    EXPECT_EQ(network.Count(gone), 0) << gone;
  }
}

TEST(FuseBatchNormActPass, FusesASumInBetweenWhateverItsOrder) {
  for (const bool norm_first : {true, false}) {
    const BoundNetwork network([&](const Variable& x) {
      const Variable norm = layers::BatchNorm(Conv(x));
      return layers::Relu(norm_first ? norm + x : x + norm);
    });
    ExpectFused(network, 1, 1);
    EXPECT_EQ(network.Count("elementwise_add"), 0);
    EXPECT_EQ(network.Count("elementwise_add_grad"), 0);
  }
}

TEST(FuseBatchNormActPass, FusesTheLaterOfTwoNormsThatAreAdded) {
  const BoundNetwork network([](const Variable& x) {
    return layers::Relu(layers::BatchNorm(Conv(x)) + layers::BatchNorm(Conv(x)));
  });
  ExpectFused(network, 1, 1);
  EXPECT_EQ(network.Count("batch_norm"), 1);
  EXPECT_EQ(network.Count("batch_norm_grad"), 1);
}

TEST(FuseBatchNormActPass, FusesWhatOnlyRunsForward) {
  ExpectFused(BoundNetwork(NormRelu, {.trains = false}), 1, 0);
}

TEST(FuseBatchNormActPass, LeavesANormThatOthersRead) {
  const BoundNetwork network([](const Variable& x) {
    const Variable norm = layers::BatchNorm(Conv(x));
    return layers::Relu(norm) + layers::Tanh(norm);
  });
  ExpectFused(network, 0, 0);
}

TEST(FuseBatchNormActPass, LeavesANormOrSumThatIsFetched) {
  std::string name;
  const auto network = [&](const Variable& x) {
    const Variable norm = layers::BatchNorm(Conv(x));
    name = norm.name();
    return layers::Relu(norm);
  };
  const BoundNetwork first(network);
  ExpectFused(BoundNetwork(network, {.fetches = {name}}), 0, 0);
  const auto sums = [&](const Variable& x) {
    const Variable sum = layers::BatchNorm(Conv(x)) + x;
    name = sum.name();
    return layers::Relu(sum);
  };
  const BoundNetwork second(sums);
  ExpectFused(second, 1, 1);
  ExpectFused(BoundNetwork(sums, {.fetches = {name}}), 0, 0);
}

TEST(FuseBatchNormActPass, LeavesASumOfAnotherShape) {
  const BoundNetwork network([](const Variable& x) {
    const Variable mean = layers::Pool2d(x, {.type = "avg", .global = true});
    return layers::Relu(layers::BatchNorm(Conv(x)) + mean);
  });
  ExpectFused(network, 0, 0);
}

TEST(FuseBatchNormActPass, LeavesANormAddedToItself) {
  const BoundNetwork network([](const Variable& x) {
    const Variable norm = layers::BatchNorm(Conv(x));
    return layers::Relu(norm + norm);
  });
  ExpectFused(network, 0, 0);
}

// The scale changes after the norm has used it.
TEST(FuseBatchNormActPass, LeavesANormWhoseScaleIsWrittenBeforeTheRelu) {
  const auto overwrite = [](Program* program) {
    Block* root = program->root();
    for (size_t i = 0; i < root->ops().size(); ++i) {
      if (root->ops()[i]->type != "batch_norm") continue;
      const std::string scale = root->ops()[i]->Input("Scale")[0];
      Op op("scale");
      op.SetInput("X", {scale}).SetOutput("Out", {scale}).SetAttr("scale", 2.0f);
      root->InsertOp(i + 1, op);
      return;
    }
  };
  ExpectFused(BoundNetwork(NormRelu, {.trains = false, .edit = overwrite}), 0, 0);
}

}  // namespace
}  // namespace skiff
