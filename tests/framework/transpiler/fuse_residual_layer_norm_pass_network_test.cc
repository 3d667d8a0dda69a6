#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/transformer_encoder.h"
#include "framework/builder/variable_operators.h"
#include "framework/transpiler/fuse_residual_layer_norm_pass.h"
#include "tests/framework/transpiler/bound_network.h"

namespace skiff {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

const Shape kTokens = {2, 3, 8};

struct BlockSpec {
  bool bias = true;
  float dropout = 0.25f;
  bool residual_first = false;
};

Variable Norm(const Variable& x) { return layers::LayerNorm(x, {.begin_norm_axis = 2}); }

// Norm(x + dropout(x W + b)), as an encoder layer ends.
Variable PostNorm(const Variable& x, const BlockSpec& spec) {
  layers::FcOptions options = {.num_flatten_dims = 2};
  if (!spec.bias) options.bias_attr = false;
  Variable branch = layers::Fc(x, x.dims().back(), options);
  if (spec.dropout > 0) {
    branch = layers::Dropout(branch, spec.dropout, {.implementation = "upscale_in_train"});
  }
  return Norm(spec.residual_first ? x + branch : branch + x);
}

BoundNetwork::Options Tokens(BoundNetwork::Options options = {}) {
  options.image = kTokens;
  return options;
}

BoundNetwork Bound(const BlockSpec& spec, const BoundNetwork::Options& options = {}) {
  return BoundNetwork([=](const Variable& x) { return PostNorm(x, spec); }, Tokens(options));
}

void ExpectFused(const BoundNetwork& network, int64_t forward, int64_t backward) {
  EXPECT_EQ(network.Count("bias_dropout_residual_layer_norm"), forward);
  EXPECT_EQ(network.Count("bias_dropout_residual_layer_norm_grad"), backward);
}

// None of the ops that the fused ones stand for is left.
void ExpectNothingLeft(const BoundNetwork& network) {
  for (const char* gone : {"elementwise_add", "dropout", "layer_norm"}) {
    EXPECT_EQ(network.Count(gone), 0) << gone;
    EXPECT_EQ(network.Count(std::string(gone) + "_grad"), 0) << gone;
  }
}

const Instruction& TheOne(const BoundNetwork& network, const std::string& type) {
  for (const Instruction& instruction : network.plan().instructions) {
    if (instruction.op->type == type) return instruction;
  }
  ADD_FAILURE() << "no " << type;
  return network.plan().instructions.front();
}

TEST(FuseResidualLayerNormPass, FusesBiasDropoutAndResidual) {
  for (const bool residual_first : {false, true}) {
    const BoundNetwork network = Bound({.residual_first = residual_first});
    ExpectFused(network, 1, 1);
    ExpectNothingLeft(network);
  }
}

TEST(FuseResidualLayerNormPass, FusesWithoutBias) {
  const BoundNetwork network = Bound({.bias = false});
  ExpectFused(network, 1, 1);
  ExpectNothingLeft(network);
  EXPECT_FALSE(TheOne(network, "bias_dropout_residual_layer_norm").InputIn("Bias"));
}

TEST(FuseResidualLayerNormPass, FusesWithoutDropout) {
  for (const bool bias : {false, true}) {
    const BoundNetwork network = Bound({.bias = bias, .dropout = 0});
    ExpectFused(network, 1, 1);
    ExpectNothingLeft(network);
  }
}

// Nothing is dropped, so that both operands of the sum have the same gradient.
TEST(FuseResidualLayerNormPass, WritesEqualGradientsOnce) {
  const BoundNetwork plain = Bound({.dropout = 0});
  const Instruction& gradient = TheOne(plain, "bias_dropout_residual_layer_norm_grad");
  EXPECT_TRUE(gradient.OutputIn("X@GRAD"));
  EXPECT_FALSE(gradient.OutputIn("Residual@GRAD"));

  const BoundNetwork dropping = Bound({});
  EXPECT_TRUE(TheOne(dropping, "bias_dropout_residual_layer_norm_grad").OutputIn("Residual@GRAD"));
}

TEST(FuseResidualLayerNormPass, KeepsWhatTheGradientReadsOnly) {
  const BoundNetwork trained = Bound({});
  const Instruction& forward = TheOne(trained, "bias_dropout_residual_layer_norm");
  EXPECT_TRUE(forward.OutputIn("Sum"));
  EXPECT_TRUE(forward.OutputIn("Mask"));

  const BoundNetwork evaluated = Bound({}, {.trains = false});
  ExpectFused(evaluated, 1, 0);
  const Instruction& alone = TheOne(evaluated, "bias_dropout_residual_layer_norm");
  EXPECT_FALSE(alone.OutputIn("Sum"));
  EXPECT_FALSE(alone.OutputIn("Mask"));
}

// The fused op draws by the id of the dropout. Two steps, so that the gradients show as well.
TEST(FuseResidualLayerNormPass, DropsTheSameElements) {
  for (const BlockSpec& spec : {BlockSpec{}, BlockSpec{.bias = false}, BlockSpec{.dropout = 0}}) {
    const auto network = [&](const Variable& x) { return layers::Tanh(PostNorm(x, spec)); };
    BoundNetwork fused(network, Tokens({.fetches = {"image@GRAD"}}));
    BoundNetwork apart(network,
                       Tokens({.skip = {"fuse_residual_layer_norm"}, .fetches = {"image@GRAD"}}));
    ExpectFused(fused, 1, 1);
    ExpectFused(apart, 0, 0);
    for (int step = 0; step < 2; ++step) {
      const std::vector<std::vector<float>> expected = apart.Step();
      const std::vector<std::vector<float>> found = fused.Step();
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_THAT(found[i], Pointwise(FloatNear(1e-5f), expected[i])) << "step " << step;
      }
    }
  }
}

// Two encoder layers: the residual's gradient is added to that of the layer's input.
TEST(FuseResidualLayerNormPass, FusesEachOfSeveralLayers) {
  const BoundNetwork network(
      [](const Variable& x) { return PostNorm(PostNorm(x, {}), {.dropout = 0}); }, Tokens());
  ExpectFused(network, 2, 2);
  ExpectNothingLeft(network);
}

// x + branch, normalized for a branch of its own, to which it is added: a layer that normalizes
// first.
Variable PreNorm(const Variable& x, const BlockSpec& spec) {
  Variable branch = layers::Fc(x, 8, {.num_flatten_dims = 2});
  if (spec.dropout > 0) {
    branch = layers::Dropout(branch, spec.dropout, {.implementation = "upscale_in_train"});
  }
  const Variable sum = spec.residual_first ? x + branch : branch + x;
  return sum + layers::Tanh(Norm(sum));
}

TEST(FuseResidualLayerNormPass, FusesASumThatGoesOn) {
  for (const BlockSpec& spec : {BlockSpec{}, BlockSpec{.dropout = 0, .residual_first = true}}) {
    const BoundNetwork network([&](const Variable& x) { return PreNorm(x, spec); }, Tokens());
    ExpectFused(network, 1, 1);
    EXPECT_TRUE(TheOne(network, "bias_dropout_residual_layer_norm").OutputIn("Sum"));
    EXPECT_TRUE(TheOne(network, "bias_dropout_residual_layer_norm_grad").InputIn("Sum@GRAD"));
    EXPECT_EQ(network.Count("sum"), 0) << "the other gradient is added there";
  }
}

TEST(FuseResidualLayerNormPass, FusesEachLayerOfAnEncoderThatNormalizesFirst) {
  const auto network = [](float dropout) {
    return BoundNetwork(
        [=](const Variable& x) {
          return layers::TransformerEncoder(x, {.layers = 2,
                                                .heads = 2,
                                                .feed_forward = 12,
                                                .dropout = dropout,
                                                .normalize_first = true});
        },
        Tokens());
  };
  for (const float dropout : {0.0f, 0.25f}) {
    const BoundNetwork fused = network(dropout);
    // A norm before each of four sub-layers, of which the first has no sum before it, and the last.
    ExpectFused(fused, 4, 4);
    EXPECT_EQ(fused.Count("layer_norm"), 1);
    EXPECT_EQ(fused.Count("layer_norm_grad"), 1);
  }
}

TEST(FuseResidualLayerNormPass, GivesTheSameIfTheSumGoesOn) {
  for (const BlockSpec& spec : {BlockSpec{}, BlockSpec{.dropout = 0}}) {
    const auto network = [&](const Variable& x) { return PreNorm(PreNorm(x, spec), spec); };
    BoundNetwork fused(network, Tokens({.fetches = {"image@GRAD"}}));
    BoundNetwork apart(network,
                       Tokens({.skip = {"fuse_residual_layer_norm"}, .fetches = {"image@GRAD"}}));
    ExpectFused(fused, 2, 2);
    for (int step = 0; step < 2; ++step) {
      const std::vector<std::vector<float>> expected = apart.Step();
      const std::vector<std::vector<float>> found = fused.Step();
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_THAT(found[i], Pointwise(FloatNear(1e-5f), expected[i])) << "step " << step;
      }
    }
  }
}

TEST(FuseResidualLayerNormPass, LeavesGradientsOfASumThatOthersSee) {
  std::string sum;
  const auto network = [&](const Variable& x) {
    const Variable both = x + layers::Fc(x, 8, {.num_flatten_dims = 2});
    sum = both.name();
    return both + layers::Tanh(Norm(both));
  };
  ExpectFused(BoundNetwork(network, Tokens()), 1, 1);
  ExpectFused(BoundNetwork(network, Tokens({.fetches = {sum + "@GRAD"}})), 1, 0);
}

TEST(FuseResidualLayerNormPass, FusesASumOfEmbeddings) {
  const BoundNetwork network(
      [](const Variable& x) {
        const Variable words = layers::Fc(x, 8, {.num_flatten_dims = 2, .bias_attr = false});
        return Norm(words + layers::Tanh(words));
      },
      Tokens());
  ExpectFused(network, 1, 1);
  ExpectNothingLeft(network);
}

// The dropout is the residual's: what is added to it stays as it is.
TEST(FuseResidualLayerNormPass, PrefersTheLongerBranch) {
  const BoundNetwork network(
      [](const Variable& x) {
        const Variable biased = layers::Fc(x, 8, {.num_flatten_dims = 2});
        const Variable dropped = layers::Dropout(layers::Fc(x, 8, {.num_flatten_dims = 2}), 0.5f);
        return Norm(biased + dropped);
      },
      Tokens());
  ExpectFused(network, 1, 1);
  EXPECT_EQ(network.Count("dropout"), 0);
  EXPECT_EQ(network.Count("dropout_grad"), 0);
  EXPECT_EQ(network.Count("linear"), 1);
}

TEST(FuseResidualLayerNormPass, LeavesABranchThatOthersRead) {
  // The biased value: what comes after it is fused.
  const BoundNetwork biased(
      [](const Variable& x) {
        const Variable branch = layers::Fc(x, 8, {.num_flatten_dims = 2});
        return Norm(layers::Dropout(branch, 0.5f) + x) + layers::Tanh(branch);
      },
      Tokens());
  ExpectFused(biased, 1, 1);
  EXPECT_FALSE(TheOne(biased, "bias_dropout_residual_layer_norm").InputIn("Bias"));
  // What dropout leaves: only the sum and the norm are fused.
  const BoundNetwork dropped(
      [](const Variable& x) {
        const Variable branch = layers::Dropout(layers::Fc(x, 8, {.num_flatten_dims = 2}), 0.5f);
        return Norm(branch + x) + layers::Tanh(branch);
      },
      Tokens());
  ExpectFused(dropped, 1, 1);
  EXPECT_EQ(dropped.Count("dropout"), 1);
  EXPECT_EQ(dropped.Count("dropout_grad"), 1);
}

TEST(FuseResidualLayerNormPass, LeavesOtherSumsAndNorms) {
  const auto count = [](const std::function<Variable(const Variable&)>& network) {
    return BoundNetwork(network, Tokens()).Count("bias_dropout_residual_layer_norm");
  };
  // Rows of two dims.
  EXPECT_EQ(count([](const Variable& x) {
              return layers::LayerNorm(x + layers::Tanh(x), {.begin_norm_axis = 1});
            }),
            0);
  // x + x, and a bias without a residual.
  EXPECT_EQ(count([](const Variable& x) { return Norm(x + x); }), 0);
  EXPECT_EQ(
      count([](const Variable& x) { return Norm(layers::Fc(x, 8, {.num_flatten_dims = 2})); }), 0);
  // A number for each row instead of for each element of a row.
  EXPECT_EQ(count([](const Variable& x) {
              const Variable rows = layers::ReduceMean(x, {.dims = {0, 2}});
              const Variable branch = layers::ElementwiseAdd(layers::Tanh(x), rows, {.axis = 1});
              return Norm(x + branch);
            }),
            1);
}

// A program that was saved by others may have a long where an int is declared.
TEST(FuseResidualLayerNormPass, TakesAttributesOf64Bits) {
  const auto widen = [](Program* program) {
    for (const auto& op : program->root()->ops()) {
      if (op->type.starts_with("layer_norm")) op->SetAttr("begin_norm_axis", int64_t{2});
      if (op->type.starts_with("elementwise_add")) op->SetAttr("axis", int64_t{-1});
      if (op->type.starts_with("dropout")) op->SetAttr("seed", int64_t{0});
    }
  };
  const BoundNetwork network = Bound({}, {.edit = widen});
  ExpectFused(network, 1, 1);
  ExpectNothingLeft(network);
}

// PaddlePaddle names the dim at which the bias of a fully connected layer starts.
TEST(FuseResidualLayerNormPass, FusesABiasWithANamedAxis) {
  const auto name_axis = [](Program* program) {
    Block* root = program->root();
    for (const auto& op : root->ops()) {
      if (!op->type.starts_with("elementwise_add")) continue;
      if (root->FindVar(op->Input("Y")[0])->dims.size() == 1) op->SetAttr("axis", int32_t{2});
    }
  };
  const BoundNetwork network = Bound({}, {.edit = name_axis});
  ExpectFused(network, 1, 1);
  ExpectNothingLeft(network);
}

TEST(FuseResidualLayerNormPass, LeavesABiasThatIsNotTrainedOutOfTheGradient) {
  const BoundNetwork network(
      [](const Variable& x) {
        const Variable branch =
            layers::Fc(x, 8, {.num_flatten_dims = 2, .bias_attr = ParamAttr{.trainable = false}});
        return Norm(layers::Dropout(branch, 0.5f) + x);
      },
      Tokens());
  ExpectFused(network, 1, 1);
  ExpectNothingLeft(network);
  EXPECT_FALSE(TheOne(network, "bias_dropout_residual_layer_norm_grad").OutputIn("Bias@GRAD"));
}

TEST(FuseResidualLayerNormPass, KeepsWhatIsFetched) {
  std::string sum;
  std::string branch;
  const auto network = [&](const Variable& x) {
    const Variable biased = layers::Fc(x, 8, {.num_flatten_dims = 2});
    branch = biased.name();
    const Variable both = biased + x;
    sum = both.name();
    return Norm(both);
  };
  ExpectFused(BoundNetwork(network, Tokens()), 1, 1);
  const BoundNetwork of_sum(network, Tokens({.fetches = {sum}}));
  ExpectFused(of_sum, 1, 1);
  EXPECT_TRUE(TheOne(of_sum, "bias_dropout_residual_layer_norm").OutputIn("Sum"));
  const BoundNetwork of_branch(network, Tokens({.fetches = {branch}}));
  ExpectFused(of_branch, 1, 1);
  EXPECT_FALSE(TheOne(of_branch, "bias_dropout_residual_layer_norm").InputIn("Bias"));
  // The gradient of the sum: nothing but the norm's gradient makes it.
  ExpectFused(BoundNetwork(network, Tokens({.fetches = {sum + "@GRAD"}})), 1, 0);
  const BoundNetwork of_gradient(network, Tokens({.fetches = {branch + "@GRAD"}}));
  ExpectFused(of_gradient, 1, 1);
  EXPECT_EQ(of_gradient.Count("elementwise_add_grad"), 1);
}

TEST(FuseResidualLayerNormPass, LeavesABiasThatIsWrittenBeforeTheNorm) {
  const auto double_bias = [](Program* program) {
    Block* root = program->root();
    for (size_t i = 0; i < root->ops().size(); ++i) {
      if (root->ops()[i]->type != "elementwise_add") continue;
      const std::string bias = root->ops()[i]->Input("Y")[0];
      root->InsertOp(i + 1, Doubled(bias));
      return;
    }
  };
  ExpectFused(Bound({}, {.edit = double_bias}), 0, 1);
}

TEST(FuseResidualLayerNormPass, LeavesADropoutWithASeedTensor) {
  const auto add_seed = [](Program* program) {
    Block* root = program->root();
    root->CreateVar({.name = "seed", .dtype = DType::kInt32, .dims = {1}});
    for (size_t i = 0; i < root->ops().size(); ++i) {
      if (root->ops()[i]->type != "dropout") continue;
      root->ops()[i]->SetInput("Seed", {"seed"});
      Op fill("fill_constant");
      fill.SetOutput("Out", {"seed"}).SetAttr("shape", std::vector<int64_t>{1});
      fill.SetAttr("dtype", static_cast<int32_t>(2)).SetAttr("value", 7.0f);
      root->InsertOp(i, std::move(fill));
      return;
    }
  };
  const BoundNetwork network = Bound({}, {.edit = add_seed});
  ExpectFused(network, 1, 1);
  EXPECT_EQ(network.Count("dropout"), 1);
}

TEST(FuseResidualLayerNormPass, LeavesOpsWhoseKernelIsForced) {
  ExpectFused(Bound({}, {.kernels = {{"layer_norm", "plain"}}}), 0, 1);
  ExpectFused(Bound({}, {.kernels = {{"layer_norm_grad", "plain"}}}), 1, 0);
  const BoundNetwork network = Bound({}, {.kernels = {{"dropout", "plain"}}});
  ExpectFused(network, 1, 1);
  EXPECT_EQ(network.Count("dropout"), 1);
}

}  // namespace
}  // namespace skiff
