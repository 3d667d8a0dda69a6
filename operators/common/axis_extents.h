// Extents for ops that work along one axis of a tensor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "framework/op/op_context.h"

namespace skiff {

// A tensor viewed as [outer, length, inner], with the axis in the middle. Element j of line i, of
// outer * inner lines, is at Start(i) + j * inner.
struct AxisExtents {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;

  constexpr int64_t lines() const { return outer * inner; }
  constexpr int64_t Start(int64_t line) const {
    return line / inner * length * inner + line % inner;
  }
  // The number of lines worth a thread.
  int64_t grain() const {
    constexpr int64_t kGrainElements = 16384;
    return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(length, 1));
  }
};

// Returns the axis as an index; 0 for a scalar, as in Fluid. Throws Error if it is out of range.
int AxisIndex(const OpContext& context, const Shape& shape, int64_t axis);
// Returns the extents of a shape, which must be known, around an axis.
AxisExtents ExtentsOfAxis(const Shape& shape, int axis);

}  // namespace skiff
