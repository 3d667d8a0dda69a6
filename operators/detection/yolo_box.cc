// yolo_box: the boxes, and the scores of their classes, that a head of YOLOv3 predicts.
//
// X has, for each anchor a and each cell (i, j) of a grid of H × W cells, the numbers
// t = (tx, ty, tw, th, object, classes…). With σ the sigmoid, s = scale_x_y and an image of h × w
// pixels, a box has the center and the extents
//
//   bx = (j + s · σ(tx) - (s - 1) / 2) · w / W     bw = exp(tw) · aw · w / (W · downsample_ratio)
//   by = (i + s · σ(ty) - (s - 1) / 2) · h / H     bh = exp(th) · ah · h / (H · downsample_ratio)
//
//   Boxes = (bx - bw / 2, by - bh / 2, bx + bw / 2, by + bh / 2)
//   Scores[c] = confidence · σ(classes[c]), where confidence = σ(object)
//
// clip_bbox moves corners into the image: xmin and ymin to at least 0, xmax and ymax to at most
// w - 1 and h - 1; a corner that is NaN becomes that end. A box whose confidence is below
// conf_thresh is 0, and its scores are. With iou_aware, X begins with a channel for each anchor, q,
// and confidence = σ(object)^(1 - f) · σ(q)^f, where f is iou_aware_factor.
//
// Box (a · H + i) · W + j of an image is that of anchor a in cell (i, j).
//
// Source: Fluid's yolo_box (PaddlePaddle 2.6).
#include <memory>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/op/registry.h"
#include "operators/detection/kernels/yolo_decoding.h"

namespace skiff {
namespace {

void CheckImageSizes(const OpContext& context, int64_t images) {
  const TensorMeta& sizes = context.Input("ImgSize");
  const int64_t numbers = sizes.shape.rank() == 2 ? sizes.shape[1] : 0;
  SKIFF_ENFORCE((numbers == 2 || numbers == -1) && sizes.dtype == DType::kInt32, kInvalidArgument,
                "yolo_box: ImgSize is ", sizes.dtype, " of shape ", sizes.shape,
                ", expected int32, [N, 2]: the height and the width of each image");
  MergeDims(images, sizes.shape[0], "yolo_box: the numbers of images of X and of ImgSize");
}

void Infer(OpContext& context) {
  const YoloHead head = ParseYoloHead(context);
  const DType dtype = context.Input("X").dtype;
  const bool is_known = head.height >= 0 && head.width >= 0;
  const int64_t boxes =
      is_known ? MultiplyCounts(head.anchors, MultiplyCounts(head.height, head.width)) : -1;
  context.SetOutput("Boxes", {head.images, boxes, kBoxSize}, dtype);
  context.SetOutput("Scores", {head.images, boxes, head.classes}, dtype);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([arguments = YoloBoxArguments<T>(context)](const KernelContext& run) {
    arguments.ForEachAnchor(run, [&](int64_t cells, const YoloBoxesOfAnchor<T>& decode) {
      ForEachOnCpu(cells, arguments.work_of_cell(), decode);
    });
  });
}

AttrDef PositiveAttr(StaticText name, int32_t default_value, StaticText doc) {
  return {.name = name,
          .type = AttrType::kInt,
          .default_value = default_value,
          .doc = doc,
          .accepts = [](const Attribute& value) { return std::get<int32_t>(value) >= 1; },
          .expected = "at least 1"};
}

std::vector<AttrDef> Attributes() {
  return {{.name = "anchors",
           .type = AttrType::kInts,
           .default_value = std::vector<int32_t>{},
           .doc = "The width and the height of each anchor, in pixels of the network's input."},
          PositiveAttr("class_num", 1, "The classes."),
          {.name = "conf_thresh",
           .type = AttrType::kFloat,
           .default_value = 0.01f,
           .doc = "A box with less confidence, and its scores, are 0."},
          PositiveAttr("downsample_ratio", 32, "The pixels of the network's input in a cell."),
          {.name = "clip_bbox",
           .type = AttrType::kBool,
           .default_value = true,
           .doc = "Moves the corners of boxes into the image."},
          {.name = "scale_x_y",
           .type = AttrType::kFloat,
           .default_value = 1.0f,
           .doc = "How far centers reach, in cells."},
          {.name = "iou_aware",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "X begins with a predicted overlap for each anchor."},
          {.name = "iou_aware_factor",
           .type = AttrType::kFloat,
           .default_value = 0.5f,
           .doc = "The power of that overlap in the confidence, from 0 to 1."}};
}

}  // namespace

YoloHead ParseYoloHead(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.shape.rank() == 4, kInvalidArgument, "yolo_box: X of shape ", x.shape,
                ", expected [N, C, H, W]");
  const size_t numbers = context.IntsAttr("anchors").size();
  SKIFF_ENFORCE(numbers > 0 && numbers % 2 == 0, kInvalidArgument, "yolo_box: anchors has ",
                numbers, " numbers, expected a width and a height for each of at least one anchor");
  YoloHead head = {.images = x.shape[0],
                   .anchors = static_cast<int64_t>(numbers / 2),
                   .classes = context.IntAttr("class_num"),
                   .height = x.shape[2],
                   .width = x.shape[3],
                   .downsample_ratio = context.IntAttr("downsample_ratio"),
                   .conf_thresh = context.Attr<float>("conf_thresh"),
                   .scale = context.Attr<float>("scale_x_y"),
                   .iou_factor = context.Attr<float>("iou_aware_factor"),
                   .iou_aware = context.Attr<bool>("iou_aware"),
                   .clips = context.Attr<bool>("clip_bbox")};
  SKIFF_ENFORCE(!head.iou_aware || (head.iou_factor >= 0 && head.iou_factor <= 1), kInvalidArgument,
                "yolo_box: iou_aware_factor is ", head.iou_factor, ", expected a number in [0, 1]");
  MergeDims(x.shape[1], head.channels(),
            StrCat("yolo_box: the channels of X and those of ", head.anchors, " anchors with ",
                   head.classes, " classes"));
  CheckImageSizes(context, head.images);
  return head;
}

void RegisterYoloBox(OpRegistry& registry) {
  OpDef def;
  def.type = "yolo_box";
  def.doc =
      "The boxes of a YOLOv3 head, each around a cell, and the scores of their classes: "
      "confidence · sigmoid.";
  def.inputs = {{.name = "X",
                 .doc = "[N, A · (5 + class_num), H, W] for A anchors; [N, A · (6 + class_num), H, "
                        "W] with iou_aware."},
                {.name = "ImgSize", .doc = "[N, 2], int32: the height and the width of an image."}};
  def.outputs = {{.name = "Boxes", .doc = "[N, A · H · W, 4]: (xmin, ymin, xmax, ymax) in pixels."},
                 {.name = "Scores", .doc = "[N, A · H · W, class_num]."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kHigh;
  def.no_gradient_reason = "a loss compares what the head predicts, not the boxes";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "yolo_box", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
