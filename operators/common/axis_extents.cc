#include "operators/common/axis_extents.h"

#include "framework/base/error.h"

namespace skiff {

int AxisIndex(const OpContext& context, const Shape& shape, int64_t axis) {
  return NormalizeAxis(axis, std::max(shape.rank(), 1),
                       StrCat(context.op().type, ": axis of a tensor of shape ", shape));
}

AxisExtents ExtentsOfAxis(const Shape& shape, int axis) {
  if (shape.rank() == 0) return {};
  return {.outer = shape.element_count(0, axis),
          .length = shape[axis],
          .inner = shape.element_count(axis + 1, shape.rank())};
}

}  // namespace skiff
