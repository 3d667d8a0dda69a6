#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/transpiler/fuse_softmax_loss_pass.h"
#include "tests/framework/transpiler/bound_network.h"

namespace skiff {
namespace {

// One class for each of the two images, all 0.
Variable Labels() { return layers::FillConstant({2, 1}, DType::kInt64, 0); }

Variable Probabilities(const Variable& x) {
  return layers::Softmax(layers::Fc(x, 5, {.num_flatten_dims = 1}));
}

void ExpectFused(const BoundNetwork& network, int64_t forward, int64_t backward) {
  EXPECT_EQ(network.Count("softmax_with_cross_entropy"), forward);
  EXPECT_EQ(network.Count("softmax_with_cross_entropy_grad"), backward);
}

TEST(FuseSoftmaxLossPass, FusesBothDirections) {
  const BoundNetwork network([](const Variable& x) {
    const Variable labels = Labels();
    return layers::CrossEntropy(Probabilities(x), labels);
  });
  ExpectFused(network, 1, 1);
  for (const char* gone : {"softmax", "cross_entropy", "softmax_grad", "cross_entropy_grad"}) {
    EXPECT_EQ(network.Count(gone), 0) << gone;
  }
}

TEST(FuseSoftmaxLossPass, FusesSoftLabels) {
  const BoundNetwork network([](const Variable& x) {
    const Variable weights = layers::FillConstant({2, 5}, DType::kFloat32, 0.2);
    return layers::CrossEntropy(Probabilities(x), weights, {.soft_label = true});
  });
  ExpectFused(network, 1, 1);
}

TEST(FuseSoftmaxLossPass, KeepsProbabilitiesThatAreFetched) {
  std::string name;
  const auto classify = [&](const Variable& x) {
    const Variable labels = Labels();
    const Variable p = Probabilities(x);
    name = p.name();
    return layers::CrossEntropy(p, labels);
  };
  const BoundNetwork first(classify);
  ExpectFused(BoundNetwork(classify, {.fetches = {name}}), 1, 1);
}

TEST(FuseSoftmaxLossPass, LeavesOutProbabilitiesThatNobodyReads) {
  const auto writes_probabilities = [](bool trains) {
    const BoundNetwork network(
        [](const Variable& x) {
          const Variable labels = Labels();
          return layers::CrossEntropy(Probabilities(x), labels);
        },
        {.trains = trains});
    const Instruction& fused =
        *std::ranges::find_if(network.plan().instructions, [](const Instruction& instruction) {
          return instruction.op->type == "softmax_with_cross_entropy";
        });
    return static_cast<bool>(fused.OutputIn("Softmax"));
  };
  EXPECT_TRUE(writes_probabilities(true));
  EXPECT_FALSE(writes_probabilities(false));
}

// Their gradient is then a sum.
TEST(FuseSoftmaxLossPass, LeavesGradientsOfProbabilitiesThatOthersUse) {
  const BoundNetwork network([](const Variable& x) {
    const Variable labels = Labels();
    const Variable p = Probabilities(x);
    return layers::CrossEntropy(p, labels) +
           layers::ReduceSum(p * p, {.dims = {1}, .keep_dim = true});
  });
  ExpectFused(network, 1, 0);
}

TEST(FuseSoftmaxLossPass, FusesOneOfTwoLosses) {
  const BoundNetwork network([](const Variable& x) {
    const Variable labels = Labels();
    const Variable p = Probabilities(x);
    return layers::CrossEntropy(p, labels) + layers::CrossEntropy(p, labels);
  });
  ExpectFused(network, 1, 0);
  EXPECT_EQ(network.Count("cross_entropy"), 1);
}

TEST(FuseSoftmaxLossPass, LeavesLabelsThatAreComputedLater) {
  const BoundNetwork network([](const Variable& x) {
    const Variable p = Probabilities(x);
    return layers::CrossEntropy(p, Labels());
  });
  ExpectFused(network, 0, 0);
}

TEST(FuseSoftmaxLossPass, LeavesOtherAxes) {
  const BoundNetwork network([](const Variable& x) {
    const Variable labels = Labels();
    return layers::CrossEntropy(layers::Softmax(layers::Fc(x, 5, {.num_flatten_dims = 1}), 0),
                                labels);
  });
  ExpectFused(network, 0, 0);
}

TEST(FuseSoftmaxLossPass, LeavesOpsWhoseKernelIsForced) {
  const auto classify = [](const Variable& x) {
    const Variable labels = Labels();
    return layers::CrossEntropy(Probabilities(x), labels);
  };
  ExpectFused(BoundNetwork(classify, {.kernels = {{"softmax", "plain"}}}), 0, 0);
  ExpectFused(BoundNetwork(classify, {.kernels = {{"softmax_grad", "plain"}}}), 1, 0);
}

// How many losses and gradients skip ignored items.
int64_t CountSkipping(const BoundNetwork& network) {
  return std::ranges::count_if(network.plan().instructions, [](const Instruction& instruction) {
    return instruction.op->HasAttr("skip_ignored") && instruction.op->Attr<bool>("skip_ignored");
  });
}

TEST(FuseSoftmaxLossPass, SkipsIgnoredItemsIfNobodyReadsTheirProbabilities) {
  std::string name;
  const auto classify = [&](const Variable& x) {
    const Variable labels = Labels();
    const Variable p = Probabilities(x);
    name = p.name();
    return layers::CrossEntropy(p, labels, {.ignore_index = 0});
  };
  EXPECT_EQ(CountSkipping(BoundNetwork(classify)), 2);
  EXPECT_EQ(CountSkipping(BoundNetwork(classify, {.trains = false})), 1);
  EXPECT_EQ(CountSkipping(BoundNetwork(classify, {.fetches = {name}})), 0);
}

TEST(FuseSoftmaxLossPass, SkipsIgnoredItemsOfALossOfLogits) {
  const BoundNetwork network([](const Variable& x) {
    const Variable labels = Labels();
    return layers::SoftmaxWithCrossEntropy(layers::Fc(x, 5, {.num_flatten_dims = 1}), labels);
  });
  EXPECT_EQ(CountSkipping(network), 2);
}

TEST(FuseSoftmaxLossPass, SkipsNothingOfSoftLabels) {
  const BoundNetwork network([](const Variable& x) {
    const Variable weights = layers::FillConstant({2, 5}, DType::kFloat32, 0.2);
    return layers::CrossEntropy(Probabilities(x), weights, {.soft_label = true});
  });
  EXPECT_EQ(CountSkipping(network), 0);
}

}  // namespace
}  // namespace skiff
