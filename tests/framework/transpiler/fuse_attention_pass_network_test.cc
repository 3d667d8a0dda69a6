#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/attention.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/transpiler/fuse_attention_pass.h"
#include "tests/framework/transpiler/bound_network.h"

namespace skiff {
namespace {

using Network = std::function<Variable(const Variable&)>;

// Two sequences of 5 tokens with 8 columns.
constexpr int64_t kLength = 5;
constexpr int64_t kWidth = 8;
BoundNetwork::Options Sequences() { return {.image = {2, kLength, kWidth}}; }

void ExpectFused(const BoundNetwork& network, int64_t forward, int64_t backward) {
  EXPECT_EQ(network.Count("multihead_attention"), forward);
  EXPECT_EQ(network.Count("multihead_attention_grad"), backward);
}

void ExpectFused(const Network& network, int64_t forward, int64_t backward) {
  ExpectFused(BoundNetwork(network, Sequences()), forward, backward);
}

void ExpectGone(const BoundNetwork& network) {
  for (const char* gone : {"softmax", "dropout", "matmul_v2", "matmul", "scale", "transpose2",
                           "reshape2", "split", "concat", "softmax_grad", "dropout_grad",
                           "matmul_v2_grad", "matmul_grad", "transpose2_grad", "reshape2_grad"}) {
    EXPECT_EQ(network.Count(gone), 0) << gone;
  }
}

// The losses of some steps of training, fused and not, which SGD makes depend on all gradients.
void ExpectSameLosses(const Network& network) {
  BoundNetwork::Options options = Sequences();
  BoundNetwork fused(network, options);
  options.skip = {"fuse_attention"};
  BoundNetwork single(network, options);
  ExpectFused(single, 0, 0);
  for (int step = 0; step < 5; ++step) {
    const float loss = single.Step()[0][0];
    EXPECT_NEAR(fused.Step()[0][0], loss, 1e-5f * std::max(1.0f, std::abs(loss))) << step;
  }
}

Network SelfAttention(const layers::AttentionOptions& options) {
  return [options](const Variable& x) {
    const Variable y = layers::Attention(x, options);
    return y * y;
  };
}

// -1e9 for the last keys of each sequence.
Variable Mask() {
  const Variable hidden = layers::FillConstant({2, 1, 1, 2}, DType::kFloat32, -1e9);
  const Variable seen = layers::FillConstant({2, 1, 1, kLength - 2}, DType::kFloat32, 0);
  return layers::Concat({seen, hidden}, 3);
}

// How a network may write attention. The default is what PaddlePaddle's own layers do.
struct Form {
  float query_scale = 0.5f;
  float score_scale = 1.0f;
  bool transposes_key = false;  // by transpose2
  float dropout = 0.0f;
  std::string implementation = "upscale_in_train";
  Variable bias = {};
  bool bias_first = false;
};

Variable SplitHeads(const Variable& x, bool transposed = false) {
  const Variable heads = layers::Reshape(x, {0, 0, 2, kWidth / 2});
  if (transposed) return layers::Transpose(heads, {0, 2, 3, 1});
  return layers::Transpose(heads, {0, 2, 1, 3});
}

Variable JoinHeads(const Variable& x) {
  return layers::Reshape(layers::Transpose(x, {0, 2, 1, 3}), {0, 0, kWidth});
}

Variable Weights(const Variable& query, const Variable& key, const Form& form = {}) {
  Variable q = SplitHeads(query);
  if (form.query_scale != 1) q = layers::Scale(q, {.scale = form.query_scale});
  Variable scores = layers::MatMul(q, SplitHeads(key, form.transposes_key),
                                   {.transpose_y = !form.transposes_key});
  if (form.score_scale != 1) scores = layers::Scale(scores, {.scale = form.score_scale});
  if (form.bias.defined()) scores = form.bias_first ? form.bias + scores : scores + form.bias;
  const Variable weights = layers::Softmax(scores);
  if (form.dropout == 0) return weights;
  return layers::Dropout(weights, form.dropout, {.implementation = form.implementation});
}

Variable Project(const Variable& x) { return layers::Fc(x, kWidth, {.num_flatten_dims = 2}); }

Variable Attend(const Variable& x, const Form& form = {}) {
  const Variable query = Project(x);
  const Variable key = Project(x);
  const Variable value = Project(x);
  const Variable y = JoinHeads(layers::MatMul(Weights(query, key, form), SplitHeads(value)));
  return y * y;
}

// The op matmul of programs before PaddlePaddle 2.0.
Variable OldMatMul(const Variable& x, const Variable& y, bool transpose_y, float alpha) {
  const LayerCall call("matmul", "", std::source_location::current());
  Op op("matmul");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Y", {call.CheckedName(y)});
  op.SetAttr("transpose_Y", transpose_y).SetAttr("alpha", alpha);
  return call.AppendFor(std::move(op));
}

TEST(FuseAttentionPass, FusesBothDirectionsOfTheLayer) {
  const BoundNetwork network(SelfAttention({.heads = 2}), Sequences());
  ExpectFused(network, 1, 1);
  ExpectGone(network);
  ExpectSameLosses(SelfAttention({.heads = 2}));
}

TEST(FuseAttentionPass, FusesAMask) {
  const Network masked = [](const Variable& x) {
    return layers::Attention(x, {.heads = 2, .mask = Mask()});
  };
  ExpectFused(masked, 1, 1);
  ExpectSameLosses(masked);
}

TEST(FuseAttentionPass, DropsTheSameWeights) {
  ExpectFused(SelfAttention({.heads = 2, .dropout = 0.4f}), 1, 1);
  ExpectSameLosses(SelfAttention({.heads = 2, .dropout = 0.4f}));
}

TEST(FuseAttentionPass, DropsNothingInEvaluation) {
  const Network network = SelfAttention({.heads = 2, .dropout = 0.4f, .is_test = true});
  ExpectFused(network, 1, 1);
  ExpectSameLosses(network);
}

TEST(FuseAttentionPass, ReadsThePackedProjection) {
  const Network network = SelfAttention({.heads = 2, .dropout = 0.1f, .packed = true});
  const BoundNetwork bound(network, Sequences());
  ExpectFused(bound, 1, 1);
  ExpectGone(bound);
  ExpectSameLosses(network);
}

TEST(FuseAttentionPass, FusesAttentionToAnotherSequence) {
  const Network network = [](const Variable& x) {
    const Variable memory = layers::Slice(x, {.axes = {1}, .starts = {0}, .ends = {3}});
    return layers::Attention(x, memory, memory, {.heads = 4});
  };
  ExpectFused(network, 1, 1);
  ExpectSameLosses(network);
}

TEST(FuseAttentionPass, FusesEveryAttentionOfANetwork) {
  const Network network = [](const Variable& x) {
    return layers::Attention(x + layers::Attention(x, {.heads = 2}), {.heads = 4});
  };
  ExpectFused(network, 2, 2);
  ExpectSameLosses(network);
}

TEST(FuseAttentionPass, KeepsNothingForAGradientThatNobodyComputes) {
  BoundNetwork::Options options = Sequences();
  options.trains = false;
  const BoundNetwork network(SelfAttention({.heads = 2, .dropout = 0.1f}), options);
  ExpectFused(network, 1, 0);
  const Instruction& fused = *std::ranges::find_if(
      network.plan().instructions,
      [](const Instruction& instruction) { return instruction.op->type == "multihead_attention"; });
  EXPECT_FALSE(fused.OutputIn("RowMax"));
  EXPECT_FALSE(fused.OutputIn("RowSum"));
  EXPECT_FALSE(fused.OutputIn("DropoutKey"));
}

TEST(FuseAttentionPass, FusesScoresThatAreScaled) {
  const Network network = [](const Variable& x) {
    return Attend(x, {.query_scale = 0.75f, .score_scale = 2.0f});
  };
  ExpectFused(network, 1, 1);
  ExpectSameLosses(network);
}

TEST(FuseAttentionPass, FusesKeysThatAreTransposed) {
  const Network network = [](const Variable& x) { return Attend(x, {.transposes_key = true}); };
  ExpectFused(network, 1, 1);
  ExpectSameLosses(network);
}

TEST(FuseAttentionPass, FusesABiasBeforeTheScores) {
  const Network network = [](const Variable& x) {
    const Variable bias = layers::FillConstant({2, 2, 5, 5}, DType::kFloat32, 0.5);
    return Attend(x, {.bias = bias, .bias_first = true});
  };
  ExpectFused(network, 1, 1);
  ExpectSameLosses(network);
}

TEST(FuseAttentionPass, FusesProductsOfOldPrograms) {
  const Network network = [](const Variable& image) {
    const Variable x = Project(image);
    const Variable scores = OldMatMul(SplitHeads(x), SplitHeads(x), true, 0.5f);
    const Variable y = JoinHeads(OldMatMul(layers::Softmax(scores), SplitHeads(x), false, 1.0f));
    return y * y;
  };
  const BoundNetwork bound(network, Sequences());
  ExpectFused(bound, 1, 1);
  ExpectGone(bound);
  ExpectSameLosses(network);
}

TEST(FuseAttentionPass, LeavesWeightsThatAreFetched) {
  std::string name;
  const Network network = [&](const Variable& image) {
    const Variable x = Project(image);
    const Variable weights = Weights(x, x);
    name = weights.name();
    return JoinHeads(layers::MatMul(weights, SplitHeads(x)));
  };
  const BoundNetwork first(network, Sequences());
  ExpectFused(first, 1, 1);
  BoundNetwork::Options options = Sequences();
  options.fetches = {name};
  ExpectFused(BoundNetwork(network, options), 0, 0);
}

// A penalty on the weights adds to their gradient.
TEST(FuseAttentionPass, LeavesWeightsThatOthersRead) {
  ExpectFused(
      [](const Variable& image) {
        const Variable x = Project(image);
        const Variable weights = Weights(x, x);
        return layers::Mean(JoinHeads(layers::MatMul(weights, SplitHeads(x)))) +
               layers::Mean(weights * weights);
      },
      0, 0);
}

TEST(FuseAttentionPass, LeavesHeadsThatTwoAttentionsShare) {
  ExpectFused(
      [](const Variable& image) {
        const Variable x = Project(image);
        const Variable value = SplitHeads(x);
        const Variable first = layers::MatMul(Weights(x, x), value);
        const Variable second = layers::MatMul(Weights(x, x, {.query_scale = 2.0f}), value);
        return JoinHeads(first) + JoinHeads(second);
      },
      0, 0);
}

TEST(FuseAttentionPass, LeavesABiasThatIsTrained) {
  ExpectFused(
      [](const Variable& x) {
        const Variable bias = layers::CreateParameter({2, 5, 5});
        return Attend(x, {.bias = bias});
      },
      0, 0);
}

TEST(FuseAttentionPass, LeavesDropoutThatScalesInEvaluation) {
  ExpectFused(
      [](const Variable& x) {
        return Attend(x, {.dropout = 0.5f, .implementation = "downgrade_in_infer"});
      },
      0, 0);
}

TEST(FuseAttentionPass, LeavesOtherPermutations) {
  ExpectFused(
      [](const Variable& image) {
        const Variable x = Project(image);
        // Heads and columns change places.
        const Variable q =
            layers::Transpose(layers::Reshape(x, {0, 0, kWidth / 2, 2}), {0, 3, 1, 2});
        const Variable weights =
            layers::Softmax(layers::MatMul(q, SplitHeads(x), {.transpose_y = true}));
        return JoinHeads(layers::MatMul(weights, SplitHeads(x)));
      },
      0, 0);
}

TEST(FuseAttentionPass, LeavesOpsWhoseKernelIsForced) {
  BoundNetwork::Options options = Sequences();
  options.kernels = {{"softmax", "plain"}};
  ExpectFused(BoundNetwork(SelfAttention({.heads = 2}), options), 0, 0);
  options.kernels = {{"softmax_grad", "plain"}};
  ExpectFused(BoundNetwork(SelfAttention({.heads = 2}), options), 0, 0);
}

}  // namespace
}  // namespace skiff
