// Non-maximum suppression in one image: of boxes of a class that overlap, the best one stays.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/op/op_context.h"
#include "operators/common/half.h"
#include "operators/detection/kernels/boxes.h"

namespace skiff {

struct SuppressionSettings {
  int64_t background_label = 0;  // the class without boxes
  float score_threshold = 0;     // only higher scores count
  int64_t nms_top_k = -1;        // the boxes of a class that are looked at; negative: all
  int64_t keep_top_k = -1;       // the boxes of an image that stay; negative: all
  float nms_threshold = 0;       // how much boxes that stay may overlap
  float nms_eta = 1;             // what a threshold above 0.5 is multiplied by after each box
  bool normalized = true;
};

// Returns the settings that the attributes of multiclass_nms give.
SuppressionSettings SuppressionSettingsOf(const OpContext& context);

// The candidates of an image.
template <typename T>
struct Candidates {
  const T* score_at(int64_t label, int64_t i) const {
    return scores + (boxes_of_class ? i * classes + label : label * count + i);
  }
  WideType<T> score(int64_t label, int64_t i) const {
    return static_cast<WideType<T>>(*score_at(label, i));
  }
  // The position of a candidate's box in `boxes`.
  int64_t position(int64_t label, int64_t i) const {
    return boxes_of_class ? i * classes + label : i;
  }
  const T* box_at(int64_t label, int64_t i) const { return boxes + position(label, i) * kBoxSize; }
  Box<WideType<T>> box(int64_t label, int64_t i) const {
    const T* of = box_at(label, i);
    using Wide = WideType<T>;
    return {static_cast<Wide>(of[0]), static_cast<Wide>(of[1]), static_cast<Wide>(of[2]),
            static_cast<Wide>(of[3])};
  }

  int64_t count = 0;
  int64_t classes = 0;
  // Whether each class has boxes of its own: scores [count, classes], boxes [count, classes, 4].
  // Otherwise scores [classes, count], boxes [count, 4].
  bool boxes_of_class = false;
  const T* scores = nullptr;
  const T* boxes = nullptr;
};

// A candidate that stays.
struct Detection {
  int64_t label;
  int64_t candidate;
};

// Returns the detections of an image, by ascending label and then by descending score, of equal
// scores the lower candidate first. Where classes have boxes of their own: by ascending label and
// candidate.
template <typename T>
std::vector<Detection> DetectionsOf(const Candidates<T>& image,
                                    const SuppressionSettings& settings);

}  // namespace skiff
