#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/base/cpu_features.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/nn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/transpiler/fuse_elementwise_pass.h"
#include "tests/framework/transpiler/bound_network.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Network = std::function<Variable(const Variable&)>;

// Arrays of a block and a half, in 16 columns.
constexpr int64_t kColumns = 16;
constexpr int64_t kRows = FuseElementwisePass::kBlockElements * 3 / 2 / kColumns;

// gelu(2 x + 1) · 3 + x
Variable Chain(const Variable& x) {
  return layers::Scale(layers::Gelu(layers::Scale(x, {.scale = 2.0f, .bias = 1.0f})),
                       {.scale = 3.0f}) +
         x;
}

// A bias and an activation that no pass has an op of its own for. The bias is left to the product
// otherwise.
Variable BiasSwish(const Variable& x) { return layers::Fc(x, kColumns, {.act = "swish"}); }
const std::vector<std::string> kBiasAlone = {"fuse_linear"};  // skipped

// Expects equal results of three steps with the pass and without it, and no more live bytes.
void ExpectTheSameInNoMoreMemory(const Network& network, BoundNetwork::Options options) {
  std::string output;
  const Network named = [&](const Variable& x) {
    const Variable y = network(x);
    output = y.name();
    return y;
  };
  const BoundNetwork names_output(named, options);
  options.fetches = {output};
  if (options.trains) options.fetches.push_back("image@GRAD");
  BoundNetwork fused(network, options);
  EXPECT_FALSE(fused.Fused().empty());
  options.skip.push_back("fuse_elementwise");
  BoundNetwork plain(network, options);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(fused.Step(), plain.Step()) << step;
  EXPECT_LE(fused.statistics().max_live_bytes, plain.statistics().max_live_bytes);
}

TEST(FuseElementwisePass, FusesAChainForwardAndBackward) {
  const BoundNetwork forward(Chain, {.image = {kRows, kColumns}, .trains = false});
  EXPECT_THAT(forward.Fused(), ElementsAre("fused(scale,gelu,scale,elementwise_add)"));
  EXPECT_LE(forward.statistics().unshared_bytes, kRows * kColumns * 4 + 64);
  const Network behind_fc = [](const Variable& x) { return Chain(layers::Fc(x, kColumns)); };
  // The peak of memory is elsewhere: at the gradient of a wide image.
  const BoundNetwork trained(behind_fc, {.image = {kRows, 8 * kColumns}});
  EXPECT_THAT(trained.Fused(), Contains(HasSubstr("scale,gelu_grad,scale,sum")));
}

TEST(FuseElementwisePass, FusesABiasAndItsActivation) {
  const BoundNetwork network(BiasSwish, {.image = {kRows, 24}, .skip = kBiasAlone});
  EXPECT_THAT(network.Fused(), Contains("fused(elementwise_add,swish)"));
}

TEST(FuseElementwisePass, ComputesTheSameOnAnyNumberOfThreads) {
  for (int threads : {1, 2, 3}) {
    const harness::ThreadCount scope(threads);
    for (int64_t rows : {kRows, 4 * kRows, 4 * kRows + 1}) {
      ExpectTheSameInNoMoreMemory(BiasSwish, {.image = {rows, 24}, .skip = kBiasAlone});
      ExpectTheSameInNoMoreMemory([](const Variable& x) { return Chain(layers::Fc(x, kColumns)); },
                                  {.image = {rows, kColumns}});
    }
  }
}

TEST(FuseElementwisePass, FusesWhatHasOtherTypes) {
  ExpectTheSameInNoMoreMemory(
      [](const Variable& x) {
        const Variable zero = layers::FillConstant({1}, DType::kFloat32, 0.0f);
        const Variable positive = layers::GreaterThan(x, zero);
        return layers::Cast(layers::Cast(positive, DType::kFloat64), DType::kFloat32) + x;
      },
      {.image = {kRows, kColumns}, .trains = false});
}

TEST(FuseElementwisePass, FusesRowsOfRepeatedTensors) {
  const auto times_row = [](int64_t columns) {
    return [columns](const Variable& x) {
      const Variable row = layers::FillConstant({columns}, DType::kFloat32, 0.5f);
      return layers::Tanh(x * row) + layers::FillConstant({1}, DType::kFloat32, 2.0f);
    };
  };
  for (int64_t columns : {3, 1000, 1024, 2000}) {
    SCOPED_TRACE(columns);
    const Shape image = {40000 / columns + 2, columns};
    EXPECT_THAT(BoundNetwork(times_row(columns), {.image = image, .trains = false}).Fused(),
                ElementsAre("fused(elementwise_mul,tanh,elementwise_add)"));
    ExpectTheSameInNoMoreMemory(times_row(columns), {.image = image, .trains = false});
  }
  // A row is more than a block, or the tensor isn't aligned with the last dims.
  const BoundNetwork wide(times_row(20000), {.image = {2, 20000}, .trains = false});
  EXPECT_THAT(wide.Fused(), ElementsAre("fused(tanh,elementwise_add)"));
  const BoundNetwork channels(
      [](const Variable& x) {
        const Variable bias = layers::FillConstant({144}, DType::kFloat32, 0.5f);
        return layers::Tanh(layers::ElementwiseAdd(x, bias, {.axis = 0}));
      },
      {.image = {144, 144}, .trains = false});
  EXPECT_THAT(channels.Fused(), IsEmpty());
}

TEST(FuseElementwisePass, FusesBlockedLayouts) {
  if (PreferredChannelBlock() == 1) GTEST_SKIP() << "this processor has no blocked layouts";
  const auto conv = [](const Variable& x) {
    return layers::Conv2d(x, {.filters = 20, .kernel = 3, .bias_attr = false});
  };
  ExpectTheSameInNoMoreMemory(
      [&](const Variable& x) { return conv(layers::Relu(conv(x) + conv(x))); },
      {.image = {2, 3, 32, 32}, .trains = false});
}

TEST(FuseElementwisePass, LeavesBatchNormsToTheirOwnFusion) {
  const BoundNetwork network(
      [](const Variable& x) { return layers::Relu(layers::BatchNorm(x) + x); },
      {.image = {2, 3, 64, 64}});
  EXPECT_EQ(network.Count("batch_norm_act"), 1);
}

}  // namespace
}  // namespace skiff
