// The arguments that the ops of the family refuse, and their messages.
#include <gmock/gmock.h>

#include "operators/detection/detection_ops.h"
#include "tests/operators/refused_op.h"

namespace skiff::harness {
namespace {

class DetectionError : public ::testing::Test {
 protected:
  DetectionError() { RegisterDetectionOps(registry_); }

  // Returns what the op says of RoisNum for images of 3 boxes in all.
  std::string ErrorOfCounts(const std::vector<int32_t>& counts) {
    Op op("multiclass_nms3");
    op.SetInput("BBoxes", {"boxes"}).SetInput("Scores", {"scores"}).SetInput("RoisNum", {"counts"});
    op.SetOutput("Out", {"out"}).SetOutput("Index", {"index"});
    op.attrs = kNmsAttrs;
    const NamedTensors inputs = {
        {"boxes", Tensor(Shape{3, 2, 4}, DType::kFloat32)},
        {"scores", Tensor(Shape{3, 2}, DType::kFloat32)},
        {"counts", Tensor::FromValues<int32_t>({std::ssize(counts)}, counts)}};
    PreparedOp prepared(registry_, op, inputs);
    prepared.Load(inputs, 0);
    return ErrorText([&] { prepared.Run(); });
  }

  const AttributeMap kNmsAttrs = {
      {"score_threshold", 0.5f}, {"nms_top_k", int32_t{-1}}, {"keep_top_k", int32_t{-1}}};
  OpRegistry registry_;
};

TEST_F(DetectionError, BoxesOfPriorsNameWhatDoesNotFit) {
  const AttributeMap sizes = {{"min_sizes", std::vector<float>{2.0f}},
                              {"variances", std::vector<float>(4, 0.1f)}};
  const auto prior_box = [&](const Shape& image, AttributeMap attrs, const std::string& message) {
    attrs.insert(sizes.begin(), sizes.end());
    return RefusedOp{"prior_box",
                     {{"Input", {1, 3, 2, 2}}, {"Image", image}},
                     {"Boxes", "Variances"},
                     attrs,
                     message};
  };
  const std::vector<std::string> out = {"OutputBox"};
  const AttributeMap decode = {{"code_type", std::string("decode_center_size")}};
  ExpectRefused(
      registry_,
      {prior_box({3, 8, 8}, {}, "Image of shape [3, 8, 8], expected [N, C, H, W]"),
       prior_box({1, 3, 0, 8}, {}, "Image of shape [1, 3, 0, 8] has no pixels"),
       prior_box({1, 3, 8, 8}, {{"max_sizes", std::vector<float>{2.0f}}}, "more than min_sizes[0]"),
       prior_box({1, 3, 8, 8}, {{"max_sizes", std::vector<float>{3.0f, 4.0f}}}, "has 2 numbers"),
       prior_box({1, 3, 8, 8}, {{"min_sizes", std::vector<float>{-1.0f}}}, "positive numbers"),
       prior_box({1, 3, 8, 8}, {{"variances", std::vector<float>{0.1f}}}, "four numbers"),
       {"box_coder", {{"PriorBox", {3, 4}}, {"TargetBox", {2, 5}}}, out, {}, "[2, 5], expected 2"},
       {"box_coder", {{"PriorBox", {3, 4}}, {"TargetBox", {2, 4}}}, out, decode, "expected 3 dims"},
       {"box_coder", {{"PriorBox", {3, 4}}, {"TargetBox", {2, 5, 4}}}, out, decode, "prior boxes"},
       {"box_coder",
        {{"PriorBox", {3, 4}}, {"PriorBoxVar", {3, 4}}, {"TargetBox", {2, 4}}},
        out,
        {{"variance", std::vector<float>(4, 0.1f)}},
        "expected one"},
       {"iou_similarity", {{"X", {3, 4}}, {"Y", {2, 5}}}, {"Out"}, {}, "Y of shape [2, 5]"}});
}

TEST_F(DetectionError, HeadsAndSuppressionsNameWhatDoesNotFit) {
  const std::vector<std::string> boxes = {"Boxes", "Scores"};
  const auto nms = [&](const std::string& type, const Shape& bboxes, const Shape& scores,
                       const std::string& message) {
    return RefusedOp{
        type, {{"BBoxes", bboxes}, {"Scores", scores}}, {"Out", "Index"}, kNmsAttrs, message};
  };
  const std::string type = "multiclass_nms2";
  ExpectRefused(
      registry_,
      {{"yolo_box", {{"X", {1, 6, 2, 2}}, {"ImgSize", {1, 2}}}, boxes, {}, "anchors has 0 numbers"},
       {"yolo_box",
        {{"X", {1, 7, 2, 2}}, {"ImgSize", {1, 2}}},
        boxes,
        {{"anchors", std::vector<int32_t>{4, 5}}},
        "the channels of X"},
       {"yolo_box",
        {{"X", {1, 6, 2, 2}}, {"ImgSize", {1, 2}}},
        boxes,
        {{"anchors", std::vector<int32_t>{4, 5}}},
        "ImgSize is float32"},
       {"yolo_box",
        {{"X", {1, 7, 2, 2}}, {"ImgSize", {1, 2}}},
        boxes,
        {{"anchors", std::vector<int32_t>{4, 5}}, {"iou_aware", true}, {"iou_aware_factor", 2.0f}},
        "iou_aware_factor is 2"},
       nms(type, {1, 3, 8}, {1, 2, 3}, "polygons of 4 points"),
       nms(type, {1, 3, 5}, {1, 2, 3}, "[1, 3, 5]"),
       nms(type, {1, 3, 4}, {1, 2, 4}, "the last one of Scores"),
       nms(type, {3, 2, 4}, {3, 2}, "BBoxes"),
       nms(type, {0, 3, 4}, {0, 2, 3}, "has no images")});
}

TEST_F(DetectionError, CountsOfBoxesMustFit) {
  EXPECT_THAT(ErrorOfCounts({1, -1, 3}), ::testing::HasSubstr("RoisNum[1] is -1"));
  EXPECT_THAT(ErrorOfCounts({2, 2}), ::testing::HasSubstr("RoisNum[1] is 2, expected a number in "
                                                          "[0, 1]"));
  EXPECT_THAT(ErrorOfCounts({2}), ::testing::HasSubstr("the sum of RoisNum is 2"));
}

}  // namespace
}  // namespace skiff::harness
