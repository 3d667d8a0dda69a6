// The lines along which cumsum adds.
#pragma once

#include <optional>

#include "operators/common/axis_extents.h"

namespace skiff {

// Returns the axis as an index; nothing if all elements are one line. Throws an Error for an axis
// out of range.
inline std::optional<int> CumsumAxis(const OpContext& context) {
  const Shape& shape = context.Input("X").shape;
  if (context.Attr<bool>("flatten") || shape.rank() == 0) return std::nullopt;
  return AxisIndex(context, shape, context.IntAttr("axis"));
}

inline AxisExtents CumsumExtents(const Shape& shape, std::optional<int> axis) {
  return axis ? ExtentsOfAxis(shape, *axis) : AxisExtents{.length = shape.element_count()};
}

}  // namespace skiff
