// The lines whose norms p_norm takes.
#pragma once

#include "framework/base/error.h"
#include "operators/common/axis_extents.h"

namespace skiff {

// Returns the axis as an index. Throws an Error if X, a scalar for example, has no such axis.
inline int PNormAxis(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  return NormalizeAxis(context.IntAttr("axis"), x.rank(),
                       StrCat(context.op().type, ": axis of a tensor of shape ", x));
}

// Returns the extents of X; with `asvector`, all elements are one line.
inline AxisExtents PNormExtents(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  if (context.Attr<bool>("asvector")) return {.length = x.element_count()};
  return ExtentsOfAxis(x, PNormAxis(context));
}

// Throws an Error for lines without elements, which have no norm.
inline void CheckPNormExtents(const OpContext& context, const AxisExtents& extents) {
  SKIFF_ENFORCE(extents.length > 0 || extents.lines() == 0, kInvalidArgument, context.op().type,
                ": X of shape ", context.Input("X").shape,
                " has no elements along the axis, expected at least one");
}

}  // namespace skiff
