// The formula of iou_similarity.
#pragma once

#include "operators/detection/kernels/boxes.h"

namespace skiff {

// Computes number i of the overlaps of all boxes of X with all boxes of Y.
template <typename T>
struct BoxOverlaps {
  constexpr void operator()(int64_t i) const {
    const Box<T> a = BoxAt(x, i / y_boxes);
    const Box<T> b = BoxAt(y, i % y_boxes);
    const Box<T> both = {a.xmin > b.xmin ? a.xmin : b.xmin, a.ymin > b.ymin ? a.ymin : b.ymin,
                         a.xmax > b.xmax ? b.xmax : a.xmax, a.ymax > b.ymax ? b.ymax : a.ymax};
    const T width = both.width() + offset;
    const T height = both.height() + offset;
    const T area = (width > T(0) ? width : T(0)) * (height > T(0) ? height : T(0));
    out[i] = area / (Area(a) + Area(b) - area + T(1e-10));
  }
  constexpr T Area(const Box<T>& box) const {
    return (box.height() + offset) * (box.width() + offset);
  }

  int64_t y_boxes;
  T offset;
  const T* x;
  const T* y;
  T* out;
};

}  // namespace skiff
