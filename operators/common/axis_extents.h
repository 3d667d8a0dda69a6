// Ops that run along one axis of a tensor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "framework/op/op_context.h"

namespace skiff {

// A tensor as [outer, length, inner], with the axis in the middle. Line i of outer * inner has
// element j at Start(i) + j * inner.
struct AxisExtents {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;

  int64_t lines() const { return outer * inner; }
  int64_t Start(int64_t line) const { return line / inner * length * inner + line % inner; }
  // Lines that are worth a thread of their own.
  int64_t grain() const {
    constexpr int64_t kGrainElements = 16384;
    return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(length, 1));
  }
};

// The axis as an index; that of a scalar is 0, as in Fluid. Error outside of the rank.
int AxisIndex(const OpContext& context, const Shape& shape, int64_t axis);
// The shape must be known.
AxisExtents ExtentsOfAxis(const Shape& shape, int axis);

}  // namespace skiff
