// Copies of a part of a tensor along one axis.
#pragma once

#include <cstdint>

#include "framework/base/dtype.h"
#include "framework/tensor/shape.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {

// The copy between a part of extent `extent` and the slice that starts at `offset` along `axis` in
// a tensor of shape `whole`. `from_part`: from the part into the tensor, else back. Allocates
// nothing.
class PartCopy {
 public:
  PartCopy(const Shape& whole, int axis, int64_t offset, int64_t extent, DType dtype,
           bool from_part);
  // `whole` points to the first element of the tensor, whatever the offset.
  void Run(const void* part, void* whole) const;      // from the part
  void Extract(const void* whole, void* part) const;  // to the part

  const StridedCopy& box() const { return copy_; }
  // Where the slice begins in the tensor.
  int64_t offset_bytes() const { return offset_bytes_; }

 private:
  StridedCopy copy_;
  int64_t offset_bytes_ = 0;
};

}  // namespace skiff
