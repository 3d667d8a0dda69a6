#include "framework/builder/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/op/grad_name.h"
#include "tests/framework/builder/builder_fixture.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

class AttentionTest : public BuilderTest {
 protected:
  Variable tokens_ = layers::Data("tokens", {-1, 7, 12});
};

TEST_F(AttentionTest, IsWrittenInOpsOfFluid) {
  const Variable y = layers::Attention(tokens_, {.heads = 3, .bias_attr = false});
  EXPECT_THAT(y.dims(), ElementsAre(-1, 7, 12));
  EXPECT_THAT(OpTypes(),
              ElementsAre("mul", "mul", "mul", "reshape2", "transpose2", "scale", "reshape2",
                          "transpose2", "reshape2", "transpose2", "matmul_v2", "softmax",
                          "matmul_v2", "transpose2", "reshape2", "mul"));
}

TEST_F(AttentionTest, NamesItsProjections) {
  layers::Attention(tokens_, {.heads = 3, .name = "layer_0"});
  EXPECT_THAT(ParameterNames(),
              ElementsAre("layer_0_query_fc.w_0", "layer_0_query_fc.b_0", "layer_0_key_fc.w_0",
                          "layer_0_key_fc.b_0", "layer_0_value_fc.w_0", "layer_0_value_fc.b_0",
                          "layer_0_output_fc.w_0", "layer_0_output_fc.b_0"));
}

TEST_F(AttentionTest, PacksTheProjectionsOfOneInput) {
  layers::Attention(tokens_, {.heads = 3, .packed = true, .bias_attr = false, .name = "layer_0"});
  EXPECT_THAT(ParameterNames(), ElementsAre("layer_0_qkv_fc.w_0", "layer_0_output_fc.w_0"));
  EXPECT_THAT(main_.root()->FindVar("layer_0_qkv_fc.w_0")->dims, ElementsAre(12, 36));
  EXPECT_THAT(OpTypes(), Contains("split"));
}

TEST_F(AttentionTest, AttendsToSequencesOfAnotherLengthAndWidth) {
  const Variable memory = layers::Data("memory", {-1, 9, 5});
  const Variable y = layers::Attention(tokens_, memory, memory, {.heads = 2, .width = 8});
  EXPECT_THAT(y.dims(), ElementsAre(-1, 7, 8));
}

// One program has a mask, the other lengths; both use the parameters of the scope.
TEST_F(AttentionTest, KeyLengthsHideWhatAMaskHides) {
  const std::vector<int64_t> lengths_of_both = {3, 7};
  std::vector<float> is_token;
  for (const int64_t length : lengths_of_both) {
    for (int64_t i = 0; i < 7; ++i) is_token.push_back(i < length ? 1.0f : 0.0f);
  }
  std::vector<float> tokens(2 * 7 * 12);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::sin(static_cast<float>(i));
  const FeedList feeds = {{"tokens", Tensor::FromValues<float>({2, 7, 12}, tokens)},
                          {"lengths", Tensor::FromValues<int64_t>({2}, lengths_of_both)},
                          {"is_token", Tensor::FromValues<float>({2, 7}, is_token)}};
  for (const bool is_packed : {false, true}) {
    SCOPED_TRACE(is_packed);
    Executor executor;
    std::vector<std::vector<float>> results;
    for (const bool by_lengths : {false, true}) {
      Program main, startup;
      const ProgramGuard guard(&main, &startup);
      layers::AttentionOptions options{.heads = 3, .packed = is_packed, .name = "attention"};
      const Variable tokens = layers::Data("tokens", {-1, 7, 12});
      const Variable lengths = layers::Data("lengths", {-1}, DType::kInt64);
      const Variable is_token = layers::Data("is_token", {-1, 7});
      if (by_lengths) {
        options.key_lengths = lengths;
      } else {
        options.mask = layers::PaddingMask(is_token);
      }
      const Variable y = layers::Attention(tokens, options);
      optimizer::Sgd({.learning_rate = 0.0f}).Minimize(layers::Mean(layers::Square(y)));
      if (!by_lengths) executor.Run(startup);
      const std::string weight = is_packed ? "attention_qkv_fc.w_0" : "attention_key_fc.w_0";
      for (const Tensor& tensor : executor.Run(main, feeds, {y.name(), GradName(weight)}))
        results.push_back(tensor.ToVector<float>());
    }
    EXPECT_THAT(results[2], Pointwise(FloatNear(1e-6f), results[0]));
    EXPECT_THAT(results[3], Pointwise(FloatNear(1e-6f), results[1]));
  }
}

// One program has a mask of all pairs, the other is causal; both use the parameters of the scope.
TEST_F(AttentionTest, CausalAttentionHidesWhatAMaskHides) {
  std::vector<float> hidden;
  for (int64_t query = 0; query < 7; ++query) {
    for (int64_t key = 0; key < 7; ++key) hidden.push_back(key > query ? -1e9f : 0.0f);
  }
  std::vector<float> tokens(2 * 7 * 12);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::sin(static_cast<float>(i));
  const FeedList feeds = {{"tokens", Tensor::FromValues<float>({2, 7, 12}, tokens)},
                          {"hidden", Tensor::FromValues<float>({1, 1, 7, 7}, hidden)}};
  for (const bool is_packed : {false, true}) {
    SCOPED_TRACE(is_packed);
    Executor executor;
    std::vector<std::vector<float>> results;
    for (const bool is_causal : {false, true}) {
      Program main, startup;
      const ProgramGuard guard(&main, &startup);
      layers::AttentionOptions options{
          .heads = 3, .causal = is_causal, .packed = is_packed, .name = "attention"};
      const Variable tokens = layers::Data("tokens", {-1, 7, 12});
      const Variable hidden = layers::Data("hidden", {1, 1, 7, 7});
      if (!is_causal) options.mask = hidden;
      const Variable y = layers::Attention(tokens, options);
      optimizer::Sgd({.learning_rate = 0.0f}).Minimize(layers::Mean(layers::Square(y)));
      if (!is_causal) executor.Run(startup);
      const std::string weight = is_packed ? "attention_qkv_fc.w_0" : "attention_key_fc.w_0";
      for (const Tensor& tensor : executor.Run(main, feeds, {y.name(), GradName(weight)}))
        results.push_back(tensor.ToVector<float>());
    }
    EXPECT_THAT(results[2], Pointwise(FloatNear(1e-6f), results[0]));
    EXPECT_THAT(results[3], Pointwise(FloatNear(1e-6f), results[1]));
  }
}

TEST_F(AttentionTest, RefusesMoreQueriesThanKeysIfCausal) {
  const Variable memory = layers::Data("memory", {-1, 6, 12});
  EXPECT_THAT(InvalidArgumentText([&] {
                layers::Attention(tokens_, memory, memory, {.heads = 3, .causal = true});
              }),
              HasSubstr("causal attention of 7 queries to 6 keys, expected at least as many keys"));
}

TEST_F(AttentionTest, CountsPositionsFromAStart) {
  const Variable start = layers::Data("start", {-1}, DType::kInt64);
  const Variable positions = layers::TokenPositions(tokens_, {.start = start, .limit = 9});
  EXPECT_THAT(positions.dims(), ElementsAre(-1, 7));
  Executor executor;
  const FeedList feeds = {
      {"tokens", Tensor::FromValues<float>({2, 7, 12}, std::vector<float>(168))},
      {"start", Tensor::FromValues<int64_t>({2}, {2, 0})}};
  EXPECT_THAT(executor.Run(main_, feeds, {positions.name()})[0].ToVector<int64_t>(),
              ElementsAre(2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6));
}

TEST_F(AttentionTest, EmbedsPositions) {
  const Variable ids = layers::Data("ids", {-1, 5}, DType::kInt64);
  const Variable y = layers::PositionEmbedding(ids, {.rows = 9, .width = 4});
  EXPECT_THAT(y.dims(), ElementsAre(-1, 5, 4));
  EXPECT_THAT(ParameterNames(), ElementsAre("position_embedding_0.w_0"));
  Executor executor;
  executor.Run(startup_);
  const std::vector<float> table =
      executor.scope().Get("position_embedding_0.w_0").ToVector<float>();
  const FeedList feeds = {{"ids", Tensor::FromValues<int64_t>({1, 5}, std::vector<int64_t>(5))}};
  EXPECT_EQ(executor.Run(main_, feeds, {y.name()})[0].ToVector<float>(),
            std::vector<float>(table.begin(), table.begin() + 20));
}

TEST_F(AttentionTest, EmbedsPositionsInSinesAndCosines) {
  const Variable y = layers::SinusoidalEmbedding(tokens_, {.width = 4});
  EXPECT_THAT(y.dims(), ElementsAre(-1, 7, 4));
  EXPECT_THAT(ParameterNames(), ElementsAre());
  Executor executor;
  const FeedList feeds = {
      {"tokens", Tensor::FromValues<float>({1, 7, 12}, std::vector<float>(84))}};
  const std::vector<float> vectors = executor.Run(main_, feeds, {y.name()})[0].ToVector<float>();
  std::vector<float> expected;
  for (int position = 0; position < 7; ++position) {
    for (const double frequency : {1.0, 0.01}) {
      expected.push_back(static_cast<float>(std::sin(position * frequency)));
      expected.push_back(static_cast<float>(std::cos(position * frequency)));
    }
  }
  EXPECT_THAT(vectors, Pointwise(FloatNear(1e-6f), expected));
  EXPECT_THAT(InvalidArgumentText([&] { layers::SinusoidalEmbedding(tokens_, {.width = 3}); }),
              HasSubstr("width = 3, expected a positive even number"));
}

// Products of queries and keys depend on their distance alone.
TEST_F(AttentionTest, TurnsQueriesAndKeysByTheirPositions) {
  const Variable x = layers::Data("x", {1, 2, 8});
  const Variable start = layers::Data("start", {1}, DType::kInt64);
  const Variable turned = layers::RotaryEmbedding(
      x, {.heads = 2, .positions = layers::TokenPositions(x, {.start = start})});
  Executor executor;
  std::vector<float> values(16);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  std::vector<float> products;
  for (const int64_t first : {0, 5}) {
    const FeedList feeds = {{"x", Tensor::FromValues<float>({1, 2, 8}, values)},
                            {"start", Tensor::FromValues<int64_t>({1}, {first})}};
    const std::vector<float> y = executor.Run(main_, feeds, {turned.name()})[0].ToVector<float>();
    if (first > 0) {
      EXPECT_THAT(y, Not(Pointwise(FloatNear(1e-2f), values)));
    }
    products.push_back(std::inner_product(y.begin(), y.begin() + 8, y.begin() + 8, 0.0f));
  }
  EXPECT_NEAR(products[0], products[1], 1e-5f);
}

TEST_F(AttentionTest, MakesACacheOfEachLayer) {
  const std::vector<Variable> cache =
      layers::KeyValueCache({.layers = 2, .sequences = 3, .capacity = 5, .width = 4});
  ASSERT_EQ(cache.size(), 4u);
  EXPECT_EQ(cache[3].name(), "cache_1_values");
  EXPECT_THAT(cache[3].dims(), ElementsAre(3, 5, 4));
  EXPECT_TRUE(cache[3].var().persistable);
  EXPECT_THAT(InvalidArgumentText([] { layers::KeyValueCache({.width = 4}); }),
              HasSubstr("1 layers, 1 sequences, a capacity of 0 and a width of 4"));
}

TEST_F(AttentionTest, RefusesLengthsBeyondTheKeys) {
  const Variable lengths = layers::Data("lengths", {-1}, DType::kInt64);
  const Variable y = layers::Attention(tokens_, {.heads = 3, .key_lengths = lengths});
  Executor executor;
  executor.Run(startup_);
  for (const int64_t length : {int64_t{-1}, int64_t{8}}) {
    const FeedList feeds = {
        {"tokens", Tensor::FromValues<float>({1, 7, 12}, std::vector<float>(84))},
        {"lengths", Tensor::FromValues<int64_t>({1}, {length})}};
    EXPECT_THAT(ErrorText(ErrorCode::kOutOfRange, [&] { executor.Run(main_, feeds, {y.name()}); }),
                HasSubstr(StrCat("KeyLengths[0] is ", length, ", expected 0 to the 7 keys")));
  }
}

TEST_F(AttentionTest, AddsTheMaskAndDropsWeights) {
  const Variable mask = layers::Data("mask", {-1, 1, 1, 7});
  layers::Attention(tokens_, {.heads = 2, .dropout = 0.1f, .mask = mask});
  EXPECT_THAT(OpTypes(), Contains("dropout"));
  const auto add = std::ranges::find_if(main_.root()->ops(), [](const auto& op) {
    return op->type == "elementwise_add" && op->Input("Y")[0] == "mask";
  });
  EXPECT_NE(add, main_.root()->ops().end());
}

TEST_F(AttentionTest, HidesPadding) {
  const Variable mask = layers::PaddingMask(layers::Data("is_token", {-1, 3}));
  EXPECT_THAT(mask.dims(), ElementsAre(-1, 1, 1, 3));
  Executor executor;
  const FeedList feeds = {{"is_token", Tensor::FromValues<float>({2, 3}, {1, 1, 0, 1, 1, 1})}};
  EXPECT_THAT(executor.Run(main_, feeds, {mask.name()})[0].ToVector<float>(),
              ElementsAre(0, 0, -10000, 0, 0, 0));
  EXPECT_THAT(InvalidArgumentText([&] { layers::PaddingMask(tokens_); }),
              HasSubstr("input \"tokens\" has the shape [-1, 7, 12], expected [N, L]"));
}

TEST_F(AttentionTest, RefusesWhatIsNoAttention) {
  const auto message = [&](const layers::AttentionOptions& options) {
    return InvalidArgumentText([&] { layers::Attention(tokens_, options); });
  };
  EXPECT_THAT(message({.heads = 5}), HasSubstr("5 heads of a width of 12"));
  EXPECT_THAT(message({.heads = 0}), HasSubstr("0 heads of a width of 12"));
  EXPECT_THAT(message({.dropout = 1.0f}), HasSubstr("dropout = 1 is outside [0, 1)"));
  EXPECT_THAT(message({.param_attr = {.name = "w"}}), HasSubstr("one for each projection"));
  EXPECT_THAT(
      InvalidArgumentText([&] { layers::Attention(tokens_, tokens_, tokens_, {.packed = true}); }),
      HasSubstr("packed projections of three inputs"));
  EXPECT_THAT(
      InvalidArgumentText([&] { layers::Attention(tokens_, tokens_, tokens_, {.rotary = true}); }),
      HasSubstr("rotary embeddings of three inputs"));
  EXPECT_THAT(message({.cache = {tokens_}}),
              HasSubstr("1 variables of a cache, expected its keys"));
  EXPECT_THAT(message({.positions = layers::TokenPositions(tokens_)}),
              HasSubstr("positions without rotary and without a cache"));
  EXPECT_THAT(message({.rotary_interleaved = true}),
              HasSubstr("rotary_interleaved without rotary"));
  const std::vector<Variable> cache = layers::KeyValueCache({.capacity = 9, .width = 12});
  EXPECT_THAT(
      message({.positions = layers::TokenPositions(tokens_, {.limit = 10}), .cache = cache}),
      HasSubstr("limit 10, and the cache \"cache_0_keys\" has room for 9 tokens"));
  const Variable rows = layers::Data("rows", {-1, 12});
  EXPECT_THAT(InvalidArgumentText([&] { layers::Attention(rows, {}); }),
              HasSubstr("expected [N, L, width]"));
  EXPECT_THAT(OpTypes(), Not(Contains("softmax")));
}

}  // namespace
}  // namespace skiff
