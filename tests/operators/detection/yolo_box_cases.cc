#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct YoloBoxSpec {
  std::vector<int32_t> anchors = {10, 13, 33, 23};
  int32_t classes = 3;
  float conf_thresh = 0.5f;
  int32_t downsample_ratio = 16;
  bool clips = true;
  float scale = 1;
  bool iou_aware = false;
  float iou_factor = 0.5f;
};

double YoloBoxSigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// What the head predicts: the numbers of one anchor in one cell.
class YoloBoxNumbers {
 public:
  YoloBoxNumbers(const YoloBoxSpec& spec, const Array& x)
      : x_(x),
        anchors_(std::ssize(spec.anchors) / 2),
        of_anchor_(spec.classes + 5),
        iou_aware_(spec.iou_aware) {}

  double At(int64_t image, int64_t anchor, int64_t number, int64_t row, int64_t column) const {
    return Channel(image, (iou_aware_ ? anchors_ : 0) + anchor * of_anchor_ + number, row, column);
  }
  double Channel(int64_t image, int64_t channel, int64_t row, int64_t column) const {
    const Shape& dims = x_.shape;
    return x_.values[static_cast<size_t>(((image * dims[1] + channel) * dims[2] + row) * dims[3] +
                                         column)];
  }

 private:
  const Array& x_;
  int64_t anchors_;
  int64_t of_anchor_;
  bool iou_aware_;
};

// Center, extent and end of the image along one axis.
std::array<double, 2> YoloBoxRange(const YoloBoxSpec& spec, double code, double log_extent,
                                   int64_t cell, int64_t cells, int32_t anchor, double pixels) {
  const double shift = (double{spec.scale} - 1) / 2;
  const double center =
      (static_cast<double>(cell) + YoloBoxSigmoid(code) * double{spec.scale} - shift) /
      static_cast<double>(cells) * pixels;
  const double extent =
      std::exp(log_extent) * anchor * pixels / static_cast<double>(cells * spec.downsample_ratio);
  if (!spec.clips) return {center - extent / 2, center + extent / 2};
  return {std::max(0.0, center - extent / 2), std::min(pixels - 1, center + extent / 2)};
}

Arrays YoloBoxReference(const YoloBoxSpec& spec, const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const LazyValues& sizes = inputs.at("ImgSize")[0].values;
  const YoloBoxNumbers numbers(spec, x);
  const int64_t anchors = std::ssize(spec.anchors) / 2;
  std::vector<double> boxes;
  std::vector<double> scores;
  for (int64_t n = 0; n < x.shape[0]; ++n) {
    for (int64_t i = 0; i < anchors * x.shape[2] * x.shape[3]; ++i) {
      const int64_t anchor = i / x.shape[3] / x.shape[2];
      const int64_t row = i / x.shape[3] % x.shape[2];
      const int64_t column = i % x.shape[3];
      const auto t = [&](int64_t number) { return numbers.At(n, anchor, number, row, column); };
      double confidence = YoloBoxSigmoid(t(4));
      if (spec.iou_aware) {
        const double factor = spec.iou_factor;
        confidence = std::pow(confidence, 1 - factor) *
                     std::pow(YoloBoxSigmoid(numbers.Channel(n, anchor, row, column)), factor);
      }
      const bool is_object = confidence >= double{spec.conf_thresh};
      const auto at = static_cast<size_t>(2 * anchor);
      const auto size = static_cast<size_t>(2 * n);
      const auto along_x =
          YoloBoxRange(spec, t(0), t(2), column, x.shape[3], spec.anchors[at], sizes[size + 1]);
      const auto along_y =
          YoloBoxRange(spec, t(1), t(3), row, x.shape[2], spec.anchors[at + 1], sizes[size]);
      for (const double end : {along_x[0], along_y[0], along_x[1], along_y[1]})
        boxes.push_back(is_object ? end : 0);
      for (int64_t c = 0; c < spec.classes; ++c)
        scores.push_back(is_object ? confidence * YoloBoxSigmoid(t(5 + c)) : 0);
    }
  }
  const int64_t count = anchors * x.shape[2] * x.shape[3];
  return {{"Boxes", {Values({x.shape[0], count, 4}, std::move(boxes))}},
          {"Scores", {Values({x.shape[0], count, spec.classes}, std::move(scores))}}};
}

OpCase YoloBoxCase(const std::string& name, const std::vector<int64_t>& images_and_grid,
                   uint64_t seed, const YoloBoxSpec& spec) {
  const int64_t images = images_and_grid[0];
  const int64_t channels = std::ssize(spec.anchors) / 2 * (spec.classes + (spec.iou_aware ? 6 : 5));
  const Shape shape = {images, channels, images_and_grid[1], images_and_grid[2]};
  return {.name = name,
          .type = "yolo_box",
          .inputs = {{"X", {Uniform(shape, seed, -2, 2)}},
                     {"ImgSize", {Integers({images, 2}, seed + 1, 40, 200, DType::kInt32)}}},
          .attrs = {{"anchors", spec.anchors},
                    {"class_num", spec.classes},
                    {"conf_thresh", spec.conf_thresh},
                    {"downsample_ratio", spec.downsample_ratio},
                    {"clip_bbox", spec.clips},
                    {"scale_x_y", spec.scale},
                    {"iou_aware", spec.iou_aware},
                    {"iou_aware_factor", spec.iou_factor}},
          .reference = [=](const Arrays& inputs) { return YoloBoxReference(spec, inputs); },
          .outputs = {{"Boxes", 1}, {"Scores", 1}}};
}

}  // namespace

void AddYoloBoxCases(CaseList& cases) {
  cases.push_back(YoloBoxCase("clipped", {2, 3, 4}, 1, {}));
  cases.push_back(YoloBoxCase("not_clipped", {2, 3, 4}, 3, {.clips = false}));
  cases.push_back(YoloBoxCase("all_boxes", {1, 3, 3}, 5, {.conf_thresh = 0}));
  cases.push_back(YoloBoxCase("no_box", {1, 3, 3}, 7, {.conf_thresh = 2}));
  cases.push_back(YoloBoxCase("scaled", {2, 2, 3}, 9, {.clips = false, .scale = 1.2f}));
  cases.push_back(YoloBoxCase("iou_aware", {2, 3, 2}, 11, {.iou_aware = true, .iou_factor = 0.4f}));
  cases.push_back(YoloBoxCase("iou_alone", {1, 3, 2}, 13, {.iou_aware = true, .iou_factor = 1}));
  cases.push_back(YoloBoxCase("one_class", {1, 1, 1}, 15,
                              {.anchors = {5, 7}, .classes = 1, .downsample_ratio = 1}));
  cases.push_back(YoloBoxCase("no_images", {0, 3, 4}, 17, {}));
  cases.push_back(YoloBoxCase("no_cells", {2, 0, 4}, 19, {}));
  cases.push_back(YoloBoxCase("many", {2, 19, 19}, 21, {.anchors = {116, 90, 156, 198, 373, 326}}));
  cases.push_back(YoloBoxCase("benchmark", {8, 76, 76}, 23,
                              {.anchors = {10, 13, 16, 30, 33, 23},
                               .classes = 80,
                               .conf_thresh = 0.005f,
                               .downsample_ratio = 8}));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
