// The lines along an axis of an array, for references of ops that run along one.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

struct AxisLines {
  // That of a scalar is 0 or -1.
  AxisLines(const Shape& shape, int64_t axis) {
    if (shape.rank() == 0) return;
    const int at = static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
    outer = shape.element_count(0, at);
    length = shape[at];
    inner = shape.element_count(at + 1, shape.rank());
  }

  int64_t count() const { return outer * inner; }
  // Returns the offset of element i of a line, if lines have `size` elements.
  size_t Place(int64_t line, int64_t i, int64_t size) const {
    return static_cast<size_t>((line / inner * size + i) * inner + line % inner);
  }
  std::vector<double> Line(const Array& array, int64_t line) const {
    std::vector<double> values;
    for (int64_t i = 0; i < length; ++i) values.push_back(array.values[Place(line, i, length)]);
    return values;
  }

  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

}  // namespace skiff::harness
