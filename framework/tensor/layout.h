// The effect of a layout on a shape.
#pragma once

#include <cstdint>

#include "framework/base/dtype.h"
#include "framework/tensor/api/layout.h"
#include "framework/tensor/shape.h"

namespace skiff {

using internal::Layout;

// Returns the number of elements that a tensor of `shape` occupies, padding included; for selected
// rows, that of the values. Throws Error for a blocked layout with rank below 2, for selected rows
// of rank 0, for an unknown dim, and on overflow.
int64_t StorageElements(const Shape& shape, Layout layout);

// Returns the same in bytes, row numbers included.
int64_t StorageBytes(const Shape& shape, DType dtype, Layout layout);

// Returns the offset of the row numbers of selected rows from the first value, in bytes.
int64_t RowNumbersOffset(const Shape& shape, DType dtype);

// For selected rows, returns the shape of the dense tensor they represent: `shape` with `height` as
// dim 0. Returns `shape` for all other layouts. Throws Error for selected rows of rank 0.
Shape DenseShape(const Shape& shape, Layout layout);

}  // namespace skiff
