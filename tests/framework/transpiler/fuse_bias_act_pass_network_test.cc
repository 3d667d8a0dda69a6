#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/builder/activation.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/variable_operators.h"
#include "framework/transpiler/fuse_bias_act_pass.h"
#include "tests/framework/transpiler/bound_network.h"

namespace skiff {
namespace {

Variable ConvRelu(const Variable& x, const std::string& data_format = "NCHW") {
  return layers::Conv2d(
      x, {.filters = 32, .kernel = 3, .padding = 1, .act = "relu", .data_format = data_format});
}

void ExpectFused(const BoundNetwork& network, int64_t forward, int64_t backward) {
  EXPECT_EQ(network.Count("bias_act"), forward);
  EXPECT_EQ(network.Count("bias_act_grad"), backward);
}

TEST(FuseBiasActPass, FusesTheBiasOfAConvolution) {
  for (const char* data_format : {"NCHW", "NHWC"}) {
    const BoundNetwork network([&](const Variable& x) { return ConvRelu(x, data_format); });
    ExpectFused(network, 1, 1);
    for (const char* gone : {"elementwise_add", "relu", "elementwise_add_grad", "relu_grad"}) {
      EXPECT_EQ(network.Count(gone), 0) << gone;
    }
  }
}

TEST(FuseBiasActPass, FusesTheBiasOfAFullyConnectedLayer) {
  ExpectFused(BoundNetwork([](const Variable& x) {
                return layers::Fc(x, 5, {.num_flatten_dims = 1, .act = "relu"});
              }),
              1, 1);
  // The last dim of three.
  const BoundNetwork rows(
      [](const Variable& x) { return layers::Fc(x, 5, {.num_flatten_dims = 2, .act = "relu"}); });
  ExpectFused(rows, 1, 1);
}

TEST(FuseBiasActPass, FusesWhatOnlyRunsForward) {
  ExpectFused(BoundNetwork([](const Variable& x) { return ConvRelu(x); }, {.trains = false}), 1, 0);
}

// Images stay blocked from one convolution to the next: the copies are those at the ends.
TEST(FuseBiasActPass, LeavesNoCopyBetweenConvolutions) {
  if (PreferredChannelBlock() == 1) GTEST_SKIP() << "this processor has no blocked layouts";
  const auto copies = [](int convolutions, const std::vector<std::string>& skip) {
    const BoundNetwork network(
        [=](const Variable& x) {
          Variable y = x;
          for (int i = 0; i < convolutions; ++i) y = ConvRelu(y);
          return y;
        },
        {.image = {2, 32, 8, 8}, .skip = skip});
    return std::ranges::count_if(network.plan().instructions, [](const Instruction& instruction) {
      return instruction.kind == InstructionKind::kCopy;
    });
  };
  EXPECT_EQ(copies(4, {}), copies(2, {}));
  EXPECT_GT(copies(4, {"fuse_bias_act"}), copies(2, {"fuse_bias_act"}));
}

TEST(FuseBiasActPass, LeavesASumThatOthersRead) {
  const BoundNetwork network([](const Variable& x) {
    const Variable sum = layers::Conv2d(x, {.filters = 3, .kernel = 1});
    return layers::Relu(sum) + layers::Tanh(sum);
  });
  ExpectFused(network, 0, 0);
}

TEST(FuseBiasActPass, LeavesAnAdditionOfAnotherShape) {
  const BoundNetwork images([](const Variable& x) { return layers::Relu(x + x); },
                            {.trains = false});
  ExpectFused(images, 0, 0);
  // Along rows, the second dim from behind of four.
  const BoundNetwork rows(
      [](const Variable& x) {
        const Variable line = layers::ReduceMean(x, {.dims = {0, 1, 3}});
        return layers::Relu(layers::ElementwiseAdd(x, line, {.axis = 2}));
      },
      {.trains = false});
  ExpectFused(rows, 0, 0);
  // One value for all channels.
  const BoundNetwork one(
      [](const Variable& x) {
        return layers::Relu(layers::ElementwiseAdd(x, layers::Mean(x), {.axis = 1}));
      },
      {.trains = false});
  ExpectFused(one, 0, 0);
}

TEST(FuseBiasActPass, LeavesRanksThatTheFusedOpDoesNotTake) {
  const BoundNetwork network(
      [](const Variable& x) { return layers::Fc(x, 5, {.num_flatten_dims = 5, .act = "relu"}); },
      {.image = {2, 1, 3, 1, 2, 4}});
  ExpectFused(network, 0, 0);
}

// A program that was saved by others may have a long where an int is declared.
TEST(FuseBiasActPass, TakesAnAxisOf64Bits) {
  const auto widen = [](Program* program) {
    for (const auto& op : program->root()->ops()) {
      if (op->type.starts_with("elementwise_add")) op->SetAttr("axis", int64_t{1});
    }
  };
  const auto network = [](const Variable& x) { return ConvRelu(x); };
  ExpectFused(BoundNetwork(network, {.edit = widen}), 1, 1);
}

Variable FcGelu(const Variable& x, int64_t dims = 1) {
  return layers::Fc(x, 5, {.num_flatten_dims = dims, .act = "gelu"});
}

void ExpectGelu(const BoundNetwork& network, int64_t forward, int64_t backward) {
  EXPECT_EQ(network.Count("bias_gelu"), forward);
  EXPECT_EQ(network.Count("bias_gelu_grad"), backward);
  // The sum is there only where somebody reads it.
  EXPECT_EQ(network.Count("gelu"), 1 - forward);
}

TEST(FuseBiasActPass, FusesGeluAlongTheLastDim) {
  for (const int64_t dims : {1, 2}) {
    const BoundNetwork network([=](const Variable& x) { return FcGelu(x, dims); });
    ExpectGelu(network, 1, 1);
    for (const char* gone : {"elementwise_add", "elementwise_add_grad", "gelu_grad"}) {
      EXPECT_EQ(network.Count(gone), 0) << gone;
    }
  }
  ExpectGelu(BoundNetwork([](const Variable& x) { return FcGelu(x); }, {.trains = false}), 1, 0);
}

TEST(FuseBiasActPass, KeepsTheFormOfGelu) {
  const BoundNetwork network([](const Variable& x) {
    return layers::Gelu(layers::Fc(x, 5, {.num_flatten_dims = 1}), /*approximate=*/true);
  });
  ExpectGelu(network, 1, 1);
  for (const Instruction& instruction : network.plan().instructions) {
    if (!instruction.op->type.starts_with("bias_gelu")) continue;
    EXPECT_TRUE(instruction.op->Attr<bool>("approximate")) << instruction.op->type;
  }
}

TEST(FuseBiasActPass, GivesGeluTheSameValues) {
  const auto network = [](const Variable& x) { return FcGelu(FcGelu(x)); };
  BoundNetwork fused(network);
  BoundNetwork apart(network, {.skip = {"fuse_bias_act"}});
  for (int step = 0; step < 3; ++step) {
    const float expected = apart.Step()[0][0];
    EXPECT_NEAR(fused.Step()[0][0], expected, 1e-6f) << "step " << step;
  }
}

TEST(FuseBiasActPass, FusesGeluWithABiasThatIsNotTrained) {
  const BoundNetwork network([](const Variable& x) {
    return layers::Fc(
        x, 5, {.num_flatten_dims = 1, .bias_attr = ParamAttr{.trainable = false}, .act = "gelu"});
  });
  ExpectGelu(network, 1, 1);
}

TEST(FuseBiasActPass, LeavesGeluOfImagesAndOfOtherSums) {
  ExpectGelu(BoundNetwork([](const Variable& x) {
               return layers::Conv2d(x, {.filters = 3, .kernel = 1, .act = "gelu"});
             }),
             0, 0);
  ExpectGelu(BoundNetwork([](const Variable& x) {
               const Variable y = layers::Fc(x, 5, {.num_flatten_dims = 1, .bias_attr = false});
               return layers::Gelu(y + y);
             }),
             0, 0);
  ExpectGelu(BoundNetwork([](const Variable& x) {
               const Variable sum = layers::Fc(x, 5, {.num_flatten_dims = 1});
               return layers::Gelu(sum) + layers::Tanh(sum);
             }),
             0, 0);
}

TEST(FuseBiasActPass, LeavesGeluIfItsSumOrTheSumsGradientIsFetched) {
  std::string sum;
  const auto network = [&](const Variable& x) {
    const Variable biased = layers::Fc(x, 5, {.num_flatten_dims = 1});
    sum = biased.name();
    return layers::Gelu(biased);
  };
  ExpectGelu(BoundNetwork(network), 1, 1);
  ExpectGelu(BoundNetwork(network, {.fetches = {sum}}), 0, 0);
  ExpectGelu(BoundNetwork(network, {.fetches = {sum + "@GRAD"}}), 0, 0);
}

TEST(FuseBiasActPass, LeavesGeluIfTheBiasIsWrittenBeforeTheGradient) {
  const auto double_bias = [](Program* program) {
    Block* root = program->root();
    std::string bias;
    for (size_t i = 0; i < root->ops().size(); ++i) {
      const Op& op = *root->ops()[i];
      if (op.type == "elementwise_add") bias = op.Input("Y")[0];
      if (op.type != "gelu") continue;
      root->InsertOp(i + 1, Doubled(bias));
      return;
    }
  };
  ExpectGelu(BoundNetwork([](const Variable& x) { return FcGelu(x); }, {.edit = double_bias}), 0,
             0);
}

// Doubles the bias behind the first op of `type`.
std::function<void(Program*)> DoubleBiasAfter(const std::string& type) {
  return [=](Program* program) {
    Block* root = program->root();
    std::string bias;
    for (size_t i = 0; i < root->ops().size(); ++i) {
      const Op& op = *root->ops()[i];
      if (op.type == "elementwise_add") bias = op.Input("Y")[0];
      if (op.type != type) continue;
      root->InsertOp(i + 1, Doubled(bias));
      return;
    }
  };
}

TEST(FuseBiasActPass, LeavesABiasThatIsWrittenBeforeTheRelu) {
  const auto network = [](const Variable& x) { return ConvRelu(x); };
  ExpectFused(BoundNetwork(network, {.edit = DoubleBiasAfter("elementwise_add")}), 0, 0);
}

TEST(FuseBiasActPass, LeavesAGradientWhoseBiasIsWrittenAfterTheForwardPass) {
  const auto network = [](const Variable& x) { return ConvRelu(x); };
  ExpectFused(BoundNetwork(network, {.edit = DoubleBiasAfter("relu")}), 1, 0);
}

TEST(FuseBiasActPass, LeavesAGradientWhoseOutputIsWrittenBeforeItRuns) {
  const auto network = [](const Variable& x) { return ConvRelu(x); };
  ExpectFused(BoundNetwork(network, {.edit = DoubleOutputAfterReluGrad}), 1, 0);
}

TEST(FuseBiasActPass, LeavesWhatIsFetched) {
  std::string sum;
  const auto network = [&](const Variable& x) {
    const Variable biased = layers::Conv2d(x, {.filters = 3, .kernel = 1});
    sum = biased.name();
    return layers::Relu(biased);
  };
  const BoundNetwork first(network);
  ExpectFused(first, 1, 1);
  ExpectFused(BoundNetwork(network, {.fetches = {sum}}), 0, 0);
  ExpectFused(BoundNetwork(network, {.fetches = {sum + "@GRAD"}}), 1, 0);
}

TEST(FuseBiasActPass, LeavesABiasThatIsNotTrained) {
  const BoundNetwork network([](const Variable& x) {
    return layers::Conv2d(
        x, {.filters = 3, .kernel = 1, .bias_attr = ParamAttr{.trainable = false}, .act = "relu"});
  });
  ExpectFused(network, 1, 0);
}

TEST(FuseBiasActPass, LeavesOpsWhoseKernelIsForced) {
  const auto network = [](const Variable& x) { return ConvRelu(x); };
  ExpectFused(BoundNetwork(network, {.kernels = {{"relu", "plain"}}}), 0, 0);
  ExpectFused(BoundNetwork(network, {.kernels = {{"relu_grad", "plain"}}}), 1, 0);
}

}  // namespace
}  // namespace skiff
