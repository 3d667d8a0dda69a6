#include "operators/tensor/kernels/part_copy.h"

namespace skiff {

PartCopy::PartCopy(const Shape& whole, int axis, int64_t offset, int64_t extent, DType dtype,
                   bool from_part) {
  Shape part = whole;
  // A part is a box of the whole tensor; StridedCopy merges the axes inside and outside of `axis`,
  // so that rows as long as possible are copied.
  part[axis] = extent;
  const auto part_strides = RowMajorStrides(part);
  const auto whole_strides = RowMajorStrides(whole);
  copy_ = from_part ? StridedCopy(part.dims(), part_strides, whole_strides, SizeOf(dtype))
                    : StridedCopy(part.dims(), whole_strides, part_strides, SizeOf(dtype));
  offset_bytes_ = offset * whole_strides[axis] * SizeOf(dtype);
}

void PartCopy::Run(const void* part, void* whole) const {
  copy_.Run(part, static_cast<char*>(whole) + offset_bytes_);
}

void PartCopy::Extract(const void* whole, void* part) const {
  copy_.Run(static_cast<const char*>(whole) + offset_bytes_, part);
}

}  // namespace skiff
