// The formula of yolo_box.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "framework/op/arguments.h"
#include "framework/op/op_context.h"
#include "operators/detection/kernels/boxes.h"

namespace skiff {

// What a YOLOv3 head predicts at an anchor in a cell: x, y, width, height, whether there is an
// object, and the scores of the classes.
inline constexpr int64_t kYoloObject = 4;
inline constexpr int64_t kYoloClasses = 5;

// The dims and attributes of yolo_box.
struct YoloHead {
  // Boxes of an image.
  constexpr int64_t boxes() const { return anchors * cells(); }
  constexpr int64_t cells() const { return height * width; }
  // The channels that an anchor has besides the one of iou_aware.
  constexpr int64_t channels_of_anchor() const { return kYoloClasses + classes; }
  constexpr int64_t channels() const {
    return anchors * (channels_of_anchor() + (iou_aware ? 1 : 0));
  }
  // The position in X of a channel of an anchor; channel 0 is x.
  constexpr int64_t PositionOf(int64_t image, int64_t anchor, int64_t channel) const {
    const int64_t before = iou_aware ? anchors : 0;
    return (image * channels() + before + anchor * channels_of_anchor() + channel) * cells();
  }
  // The position in X of the channel of iou_aware.
  constexpr int64_t PositionOfIou(int64_t image, int64_t anchor) const {
    return (image * channels() + anchor) * cells();
  }

  int64_t images = 0;
  int64_t anchors = 0;
  int64_t classes = 0;
  int64_t height = 0;  // of the grid of cells
  int64_t width = 0;
  int64_t downsample_ratio = 0;
  float conf_thresh = 0;
  float scale = 1;
  float iou_factor = 0;
  bool iou_aware = false;
  bool clips = true;
};

// Returns the head that yolo_box decodes. Dims of -1 stay unknown. Throws Error for shapes and
// attributes that don't fit.
YoloHead ParseYoloHead(const OpContext& context);

template <typename T>
constexpr T YoloSigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

// Decodes cell i of all images, at one anchor.
template <typename T>
struct YoloBoxesOfAnchor {
  constexpr void operator()(int64_t i) const {
    const int64_t image = i / head.cells();
    const int64_t cell = i % head.cells();
    const int64_t to = image * head.boxes() + anchor * head.cells() + cell;
    const T confidence = ConfidenceOf(image, cell);
    const bool is_object = !(confidence < static_cast<T>(head.conf_thresh));
    SetBox(is_object ? BoxOf(image, cell) : Box<T>{}, boxes, to);
    const T* classes = x + head.PositionOf(image, anchor, kYoloClasses) + cell;
    for (int64_t c = 0; c < head.classes; ++c) {
      scores[to * head.classes + c] =
          is_object ? confidence * YoloSigmoid(classes[c * head.cells()]) : T(0);
    }
  }

  constexpr T ConfidenceOf(int64_t image, int64_t cell) const {
    const T object = YoloSigmoid(x[head.PositionOf(image, anchor, kYoloObject) + cell]);
    if (!head.iou_aware) return object;
    const T iou = YoloSigmoid(x[head.PositionOfIou(image, anchor) + cell]);
    const T factor = static_cast<T>(head.iou_factor);
    return std::pow(object, T(1) - factor) * std::pow(iou, factor);
  }

  constexpr Box<T> BoxOf(int64_t image, int64_t cell) const {
    const T* code = x + head.PositionOf(image, anchor, 0) + cell;
    const T height = static_cast<T>(sizes[2 * image]);
    const T width = static_cast<T>(sizes[2 * image + 1]);
    const T x_center = CenterOf(code[0], cell % head.width, head.width) * width;
    const T y_center = CenterOf(code[head.cells()], cell / head.width, head.height) * height;
    const T box_width = ExtentOf(code[2 * head.cells()], anchor_width, head.width) * width;
    const T box_height = ExtentOf(code[3 * head.cells()], anchor_height, head.height) * height;
    const Box<T> box = {x_center - box_width / T(2), y_center - box_height / T(2),
                        x_center + box_width / T(2), y_center + box_height / T(2)};
    return head.clips ? Clipped(box, width - T(1), height - T(1)) : box;
  }
  // The center of a box and its extent along an axis, as shares of the image.
  constexpr T CenterOf(T code, int64_t at, int64_t cells) const {
    const T scale = static_cast<T>(head.scale);
    return (static_cast<T>(at) + YoloSigmoid(code) * scale - (scale - T(1)) / T(2)) /
           static_cast<T>(cells);
  }
  constexpr T ExtentOf(T code, T anchor_extent, int64_t cells) const {
    return std::exp(code) * anchor_extent / static_cast<T>(head.downsample_ratio * cells);
  }
  // NaN becomes an end.
  constexpr Box<T> Clipped(const Box<T>& box, T last_x, T last_y) const {
    return {box.xmin > T(0) ? box.xmin : T(0), box.ymin > T(0) ? box.ymin : T(0),
            box.xmax < last_x ? box.xmax : last_x, box.ymax < last_y ? box.ymax : last_y};
  }

  YoloHead head;
  int64_t anchor;
  T anchor_width;
  T anchor_height;
  const T* x;
  const int32_t* sizes;  // of each image its height and its width
  T* boxes;
  T* scores;
};

// The arguments of yolo_box for kernels.
template <typename T>
class YoloBoxArguments {
 public:
  explicit YoloBoxArguments(const OpContext& context)
      : head_(ParseYoloHead(context)),
        anchors_(context.IntsAttr("anchors")),
        x_(context, "X"),
        sizes_(context, "ImgSize"),
        boxes_(context, "Boxes"),
        scores_(context, "Scores") {}

  // Calls decode(cells, what to call for each) for each anchor.
  template <class Decode>
  void ForEachAnchor(const KernelContext& run, const Decode& decode) const {
    for (int64_t anchor = 0; anchor < head_.anchors; ++anchor) {
      const auto at = static_cast<size_t>(2 * anchor);
      decode(x_.shape(run)[0] * head_.cells(),
             YoloBoxesOfAnchor<T>{head_, anchor, static_cast<T>(anchors_[at]),
                                  static_cast<T>(anchors_[at + 1]), x_(run), sizes_(run),
                                  boxes_(run), scores_(run)});
    }
  }
  int64_t work_of_cell() const { return 20 * head_.channels_of_anchor(); }

 private:
  YoloHead head_;
  std::vector<int64_t> anchors_;
  In<T> x_;
  In<int32_t> sizes_;
  Out<T> boxes_;
  Out<T> scores_;
};

}  // namespace skiff
