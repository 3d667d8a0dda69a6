#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/nn.h"
#include "framework/transpiler/fuse_linear_pass.h"
#include "tests/framework/transpiler/bound_network.h"

namespace skiff {
namespace {

using Network = std::function<Variable(const Variable&)>;

// Two layers: one bias is the product's, the other one that of the relu.
Variable TwoLayers(const Variable& x) {
  return layers::Fc(layers::Fc(x, 6, {.num_flatten_dims = 1, .act = "tanh"}), 5, {.act = "relu"});
}

TEST(FuseLinearPass, LeavesABiasToAPassThatFusesMore) {
  const BoundNetwork network(TwoLayers);
  EXPECT_EQ(network.Count("linear"), 1);
  EXPECT_EQ(network.Count("bias_act"), 1);
  EXPECT_EQ(network.Count("mul"), 1);
  EXPECT_EQ(network.Count("mul_grad"), 2);
  EXPECT_EQ(network.Count("elementwise_add"), 0);
}

TEST(FuseLinearPass, GivesTheSameValues) {
  for (const bool trains : {false, true}) {
    BoundNetwork together(TwoLayers, {.trains = trains});
    BoundNetwork apart(TwoLayers, {.trains = trains, .skip = {"fuse_linear"}});
    EXPECT_EQ(apart.Count("linear"), 0);
    for (int step = 0; step < 3; ++step) {
      const std::vector<std::vector<float>> expected = apart.Step();
      const std::vector<std::vector<float>> found = together.Step();
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        for (size_t j = 0; j < expected[i].size(); ++j) {
          EXPECT_NEAR(found[i][j], expected[i][j], FuseLinearPass().tolerance());
        }
      }
    }
  }
}

// The weight is doubled between the product and the addition.
TEST(FuseLinearPass, LeavesAWeightThatIsWrittenBeforeTheAddition) {
  const auto edit = [](Program* program) {
    Block* root = program->root();
    for (size_t i = 0; i < root->ops().size(); ++i) {
      if (root->ops()[i]->type != "mul") continue;
      root->InsertOp(i + 1, Doubled(root->ops()[i]->Input("Y")[0]));
      return;
    }
  };
  const Network network = [](const Variable& x) {
    return layers::Fc(x, 6, {.num_flatten_dims = 1, .act = "tanh"});
  };
  EXPECT_EQ(BoundNetwork(network, {.trains = false}).Count("linear"), 1);
  EXPECT_EQ(BoundNetwork(network, {.trains = false, .edit = edit}).Count("linear"), 0);
}

}  // namespace
}  // namespace skiff
