#include "framework/builder/detection.h"

#include <string>
#include <utility>
#include <vector>

#include "framework/builder/layer_call.h"
#include "framework/ir/program.h"

namespace skiff::layers {

ScoredBoxes YoloBox(const Variable& x, const Variable& image_sizes, const YoloBoxOptions& options,
                    Site site) {
  const LayerCall call("yolo_box", "", site);
  Op op("yolo_box");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("ImgSize", {call.CheckedName(image_sizes)});
  op.SetAttr("anchors", options.anchors).SetAttr("class_num", options.classes);
  op.SetAttr("conf_thresh", options.conf_thresh);
  op.SetAttr("downsample_ratio", options.downsample_ratio);
  op.SetAttr("clip_bbox", options.clip_bbox).SetAttr("scale_x_y", options.scale_x_y);
  op.SetAttr("iou_aware", options.iou_aware);
  op.SetAttr("iou_aware_factor", options.iou_aware_factor);
  const Variable scores = call.NewOutput();
  op.SetOutput("Scores", {scores.name()});
  return {.boxes = call.AppendFor(std::move(op), "Boxes"), .scores = scores};
}

PriorBoxes PriorBox(const Variable& x, const Variable& images, const PriorBoxOptions& options,
                    Site site) {
  const LayerCall call("prior_box", "", site);
  Op op("prior_box");
  op.SetInput("Input", {call.CheckedName(x)}).SetInput("Image", {call.CheckedName(images)});
  call.Enforce(!options.min_sizes.empty(), "min_sizes has no size, expected at least one");
  op.SetAttr("min_sizes", options.min_sizes).SetAttr("max_sizes", options.max_sizes);
  op.SetAttr("aspect_ratios", options.aspect_ratios);
  const std::vector<float> usual = {0.1f, 0.1f, 0.2f, 0.2f};
  op.SetAttr("variances", options.variances.empty() ? usual : options.variances);
  op.SetAttr("flip", options.flip).SetAttr("clip", options.clip);
  op.SetAttr("step_w", options.step_width).SetAttr("step_h", options.step_height);
  op.SetAttr("offset", options.offset);
  op.SetAttr("min_max_aspect_ratios_order", options.min_max_aspect_ratios_order);
  const Variable variances = call.NewOutput();
  op.SetOutput("Variances", {variances.name()});
  return {.boxes = call.AppendFor(std::move(op), "Boxes"), .variances = variances};
}

Variable BoxCoder(const Variable& priors, const Variable& targets, const BoxCoderOptions& options,
                  Site site) {
  const LayerCall call("box_coder", "", site);
  Op op("box_coder");
  op.SetInput("PriorBox", {call.CheckedName(priors)});
  if (options.prior_variances.defined()) {
    op.SetInput("PriorBoxVar", {call.CheckedName(options.prior_variances)});
  }
  op.SetInput("TargetBox", {call.CheckedName(targets)});
  op.SetAttr("code_type",
             std::string(options.decode ? "decode_center_size" : "encode_center_size"));
  op.SetAttr("variance", options.variance).SetAttr("box_normalized", options.box_normalized);
  op.SetAttr("axis", options.axis);
  return call.AppendFor(std::move(op), "OutputBox");
}

Variable IouSimilarity(const Variable& x, const Variable& y, bool box_normalized, Site site) {
  const LayerCall call("iou_similarity", "", site);
  Op op("iou_similarity");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Y", {call.CheckedName(y)});
  op.SetAttr("box_normalized", box_normalized);
  return call.AppendFor(std::move(op));
}

Detections MulticlassNms(const Variable& boxes, const Variable& scores,
                         const MulticlassNmsOptions& options, Site site) {
  const LayerCall call("multiclass_nms", "", site);
  Op op("multiclass_nms3");
  op.SetInput("BBoxes", {call.CheckedName(boxes)}).SetInput("Scores", {call.CheckedName(scores)});
  if (options.counts.defined()) op.SetInput("RoisNum", {call.CheckedName(options.counts)});
  op.SetAttr("score_threshold", options.score_threshold).SetAttr("nms_top_k", options.nms_top_k);
  op.SetAttr("keep_top_k", options.keep_top_k).SetAttr("nms_threshold", options.nms_threshold);
  op.SetAttr("nms_eta", options.nms_eta).SetAttr("background_label", options.background_label);
  op.SetAttr("normalized", options.normalized);
  const Variable index = call.NewOutput();
  const Variable counts = call.NewOutput();
  op.SetOutput("Index", {index.name()}).SetOutput("NmsRoisNum", {counts.name()});
  return {.out = call.AppendFor(std::move(op)), .indices = index, .counts = counts};
}

Variable RoiAlign(const Variable& x, const Variable& rois, const RoiAlignOptions& options,
                  Site site) {
  const LayerCall call("roi_align", "", site);
  Op op("roi_align");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("ROIs", {call.CheckedName(rois)});
  if (options.counts.defined()) op.SetInput("RoisNum", {call.CheckedName(options.counts)});
  op.SetAttr("pooled_height", options.pooled.height).SetAttr("pooled_width", options.pooled.width);
  op.SetAttr("spatial_scale", options.spatial_scale);
  op.SetAttr("sampling_ratio", options.sampling_ratio).SetAttr("aligned", options.aligned);
  return call.AppendFor(std::move(op));
}

}  // namespace skiff::layers
