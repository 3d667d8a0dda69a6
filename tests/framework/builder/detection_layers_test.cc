// Layers that find objects in images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/detection.h"
#include "framework/builder/tensor_layers.h"
#include "tests/framework/builder/layers_fixture.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(LayersTest, YoloBoxAndNmsInferShapes) {
  const Variable head = layers::Data("head", {2, 14, 3, 4});
  const Variable sizes = layers::Data("sizes", {2, 2}, DType::kInt32);
  const auto found = layers::YoloBox(
      head, sizes, {.anchors = {3, 4, 5, 6}, .classes = 2, .clip_bbox = false, .scale_x_y = 1.5f});
  EXPECT_THAT(found.boxes.dims(), ElementsAre(2, 24, 4));
  EXPECT_THAT(found.scores.dims(), ElementsAre(2, 24, 2));
  EXPECT_FALSE(LastOp().Attr<bool>("clip_bbox"));
  EXPECT_EQ(LastOp().Attr<float>("scale_x_y"), 1.5f);
  const auto kept = layers::MulticlassNms(found.boxes, layers::Transpose(found.scores, {0, 2, 1}),
                                          {.nms_top_k = 5, .nms_eta = 0.5f});
  EXPECT_THAT(kept.out.dims(), ElementsAre(-1, 6));
  EXPECT_THAT(kept.indices.dims(), ElementsAre(-1, 1));
  EXPECT_THAT(kept.counts.dims(), ElementsAre(2));
  EXPECT_EQ(LastOp().type, "multiclass_nms3");
  EXPECT_EQ(LastOp().Attr<int32_t>("nms_top_k"), 5);
  EXPECT_EQ(LastOp().Attr<float>("nms_eta"), 0.5f);
  EXPECT_THAT(ErrorText([&] { layers::YoloBox(head, sizes, {}); }),
              HasSubstr("anchors has 0 numbers"));
}

TEST_F(LayersTest, PriorBoxAndBoxCoderInferShapes) {
  const auto priors = layers::PriorBox(
      image_, layers::Data("large", {-1, 3, 64, 64}),
      {.min_sizes = {8.0f}, .max_sizes = {16.0f}, .aspect_ratios = {2.0f}, .flip = true});
  EXPECT_THAT(priors.boxes.dims(), ElementsAre(8, 8, 4, 4));
  EXPECT_THAT(priors.variances.dims(), ElementsAre(8, 8, 4, 4));
  EXPECT_THAT(ErrorText([&] { layers::PriorBox(image_, image_, {}); }),
              HasSubstr("min_sizes has no size"));
  const Variable rows = layers::Reshape(priors.boxes, {-1, 4});
  const Variable boxes = layers::Data("boxes", {-1, 4});
  EXPECT_THAT(layers::BoxCoder(rows, boxes).dims(), ElementsAre(-1, 256, 4));
  const Variable codes = layers::Data("codes", {-1, 256, 4});
  const Variable decoded = layers::BoxCoder(
      rows, codes, {.decode = true, .prior_variances = layers::Reshape(priors.variances, {-1, 4})});
  EXPECT_THAT(decoded.dims(), ElementsAre(-1, 256, 4));
  EXPECT_EQ(LastOp().Attr<std::string>("code_type"), "decode_center_size");
  EXPECT_EQ(LastOp().Input("PriorBoxVar").size(), 1);
  EXPECT_THAT(layers::IouSimilarity(boxes, rows, false).dims(), ElementsAre(-1, 256));
  EXPECT_FALSE(LastOp().Attr<bool>("box_normalized"));
}

TEST_F(LayersTest, RoiAlignInfersShapes) {
  const Variable rois = layers::Data("rois", {-1, 4});
  const Variable counts = layers::Data("counts", {-1}, DType::kInt32);
  const Variable out =
      layers::RoiAlign(image_, rois, {.pooled = {2, 5}, .sampling_ratio = 2, .counts = counts});
  EXPECT_THAT(out.dims(), ElementsAre(-1, 3, 2, 5));
  EXPECT_TRUE(LastOp().Attr<bool>("aligned"));
  EXPECT_EQ(LastOp().Attr<int32_t>("sampling_ratio"), 2);
}

}  // namespace
}  // namespace skiff
