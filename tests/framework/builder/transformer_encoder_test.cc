#include "framework/builder/transformer_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/builder/data.h"
#include "tests/framework/builder/builder_fixture.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TransformerEncoderTest : public BuilderTest {
 protected:
  // The types of the ops outside attention, which begins and ends with a product.
  std::vector<std::string> OpsOf(const layers::TransformerEncoderOptions& options) {
    layers::TransformerEncoder(tokens_, options);
    std::vector<std::string> types;
    for (const auto& op : main_.root()->ops()) {
      const std::string& type = op->type;
      const bool is_sum = type == "elementwise_add" && !op->Input("Y")[0].ends_with(".b_0");
      if (type == "layer_norm" || type == "softmax" || type == "dropout" || type == "gelu" ||
          is_sum) {
        types.push_back(type);
      }
    }
    return types;
  }

  Variable tokens_ = layers::Data("tokens", {-1, 7, 12});
};

TEST_F(TransformerEncoderTest, NormalizesSums) {
  EXPECT_THAT(OpsOf({.heads = 3}), ElementsAre("softmax", "elementwise_add", "layer_norm", "gelu",
                                               "elementwise_add", "layer_norm"));
}

TEST_F(TransformerEncoderTest, NormalizesInputsAndTheResultOfTheLastLayer) {
  EXPECT_THAT(OpsOf({.layers = 2, .heads = 3, .normalize_first = true}),
              ElementsAre("layer_norm", "softmax", "elementwise_add",  //
                          "layer_norm", "gelu", "elementwise_add",     //
                          "layer_norm", "softmax", "elementwise_add",  //
                          "layer_norm", "gelu", "elementwise_add", "layer_norm"));
}

TEST_F(TransformerEncoderTest, DropsWeightsAndWhatIsAdded) {
  EXPECT_THAT(OpsOf({.heads = 3, .dropout = 0.1f, .attention_dropout = 0.2f}),
              ElementsAre("softmax", "dropout", "dropout", "elementwise_add", "layer_norm", "gelu",
                          "dropout", "elementwise_add", "layer_norm"));
}

TEST_F(TransformerEncoderTest, HasTheParametersOfPublishedModels) {
  layers::TransformerEncoder(tokens_, {.heads = 3, .feed_forward = 5, .name = "encoder"});
  EXPECT_THAT(
      ParameterNames(),
      ElementsAre(
          "encoder_layer_0_multi_head_att_query_fc.w_0",
          "encoder_layer_0_multi_head_att_query_fc.b_0",
          "encoder_layer_0_multi_head_att_key_fc.w_0", "encoder_layer_0_multi_head_att_key_fc.b_0",
          "encoder_layer_0_multi_head_att_value_fc.w_0",
          "encoder_layer_0_multi_head_att_value_fc.b_0",
          "encoder_layer_0_multi_head_att_output_fc.w_0",
          "encoder_layer_0_multi_head_att_output_fc.b_0",
          "encoder_layer_0_post_att_layer_norm_scale", "encoder_layer_0_post_att_layer_norm_bias",
          "encoder_layer_0_ffn_fc_0.w_0", "encoder_layer_0_ffn_fc_0.b_0",
          "encoder_layer_0_ffn_fc_1.w_0", "encoder_layer_0_ffn_fc_1.b_0",
          "encoder_layer_0_post_ffn_layer_norm_scale", "encoder_layer_0_post_ffn_layer_norm_bias"));
  EXPECT_THAT(main_.root()->FindVar("encoder_layer_0_ffn_fc_0.w_0")->dims, ElementsAre(12, 5));
}

TEST_F(TransformerEncoderTest, KeepsTheShape) {
  EXPECT_THAT(layers::TransformerEncoder(tokens_, {.layers = 2, .heads = 3, .packed = true}).dims(),
              ElementsAre(-1, 7, 12));
}

TEST_F(TransformerEncoderTest, RefusesBadOptions) {
  const auto expect = [&](const layers::TransformerEncoderOptions& options,
                          const std::string& message) {
    EXPECT_THAT(InvalidArgumentText([&] { layers::TransformerEncoder(tokens_, options); }),
                HasSubstr(message));
    EXPECT_TRUE(main_.root()->ops().empty());
  };
  expect({.layers = 0}, "transformer_encoder: layers = 0, expected at least 1");
  expect({.feed_forward = -1}, "feed_forward = -1, expected no negative number");
  expect({.dropout = 1.0f}, "dropout = 1 is outside [0, 1)");
  expect({.heads = 5}, "5 heads of a width of 12, expected a positive width that heads divides");
  expect({.param_attr = {.name = "w"}}, "param_attr or bias_attr names a parameter");
  const Variable matrix = layers::Data("matrix", {-1, 12});
  EXPECT_THAT(InvalidArgumentText([&] { layers::TransformerEncoder(matrix, {.heads = 3}); }),
              HasSubstr("input \"matrix\" has the shape [-1, 12], expected [N, L, width]"));
}

}  // namespace
}  // namespace skiff
