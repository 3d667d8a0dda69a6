#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/builder/activation.h"
#include "framework/builder/nn.h"
#include "framework/builder/variable_operators.h"
#include "framework/transpiler/fuse_batch_norm_act_pass.h"
#include "tests/framework/transpiler/bound_network.h"

namespace skiff {
namespace {

Variable Conv(const Variable& x) {
  return layers::Conv2d(x, {.filters = 3, .kernel = 3, .padding = 1, .bias_attr = false});
}

Variable NormRelu(const Variable& x) { return layers::Relu(layers::BatchNorm(Conv(x))); }

void ExpectFused(const BoundNetwork& network, int64_t forward, int64_t backward) {
  EXPECT_EQ(network.Count("batch_norm_act"), forward);
  EXPECT_EQ(network.Count("batch_norm_act_grad"), backward);
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

TEST(FuseBatchNormActPass, LeavesACheckpointBetweenThem) {
  std::string name;
  const auto network = [&](const Variable& x) {
    const Variable norm = layers::BatchNorm(Conv(x));
    name = norm.name();
    return NormRelu(layers::Relu(norm));
  };
  ExpectFused(BoundNetwork(network), 2, 2);
  const BoundNetwork with_checkpoint(
      network, {.memory = {.recompute = Recompute::kCheckpoints, .checkpoints = {name}}});
  ExpectFused(with_checkpoint, 1, 1);
  EXPECT_EQ(with_checkpoint.Count("relu"), 1);
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

// Doubles the first batch_norm's variable in `slot`, right after the first op of `type`.
std::function<void(Program*)> DoubleAfter(const std::string& type, const std::string& slot) {
  return [=](Program* program) {
    Block* root = program->root();
    const auto first = [&](const std::string& wanted) {
      size_t i = 0;
      while (root->ops().at(i)->type != wanted) ++i;
      return i;
    };
    const std::string name = root->ops()[first("batch_norm")]->Input(slot)[0];
    root->InsertOp(first(type) + 1, Doubled(name));
  };
}

TEST(FuseBatchNormActPass, LeavesANormWhoseScaleIsWrittenBeforeTheRelu) {
  ExpectFused(BoundNetwork(NormRelu, {.trains = false, .edit = DoubleAfter("batch_norm", "Scale")}),
              0, 0);
}

TEST(FuseBatchNormActPass, LeavesAGradientWhoseBiasIsWrittenAfterTheForwardPass) {
  ExpectFused(BoundNetwork(NormRelu, {.edit = DoubleAfter("relu_grad", "Bias")}), 1, 0);
}

TEST(FuseBatchNormActPass, LeavesAGradientWhoseOutputIsWrittenBeforeItRuns) {
  const auto network = [](const Variable& x) {
    return layers::Relu(layers::BatchNorm(Conv(x)) + x);
  };
  ExpectFused(BoundNetwork(network, {.edit = DoubleOutputAfterReluGrad}), 1, 0);
}

TEST(FuseBatchNormActPass, LeavesAGradientThatStaysInTheScope) {
  const auto keep = [](Program* program) {
    for (const auto& op : program->root()->ops()) {
      if (op->type != "batch_norm_grad") continue;
      program->root()->FindVar(op->Output("X@GRAD")[0])->persistable = true;
    }
  };
  ExpectFused(BoundNetwork(NormRelu, {.edit = keep}), 1, 0);
}

TEST(FuseBatchNormActPass, LeavesAGradientThatIsFetched) {
  std::string gradient;
  const auto network = [&](const Variable& x) {
    const Variable norm = layers::BatchNorm(Conv(x));
    gradient = norm.name() + "@GRAD";
    return layers::Relu(norm);
  };
  const BoundNetwork first(network);
  ExpectFused(BoundNetwork(network, {.fetches = {gradient}}), 1, 0);
}

TEST(FuseBatchNormActPass, LeavesOpsWhoseKernelIsForced) {
  ExpectFused(BoundNetwork(NormRelu, {.kernels = {{"batch_norm", "plain"}}}), 0, 0);
  ExpectFused(BoundNetwork(NormRelu, {.kernels = {{"relu_grad", "plain"}}}), 1, 0);
}

}  // namespace
}  // namespace skiff
