// The elements of a tensor that starts, ends and strides along some axes select: what
// strided_slice takes, and set_value sets.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "framework/op/kernel.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {

// A copy between a tensor and other elements, and the offsets at which it begins.
struct SelectionCopy {
  StridedCopy copy;
  int64_t source_offset_bytes = 0;
  int64_t target_offset_bytes = 0;

  // Both pointers are to the first element of a tensor.
  void Run(const KernelContext& run, const void* source, void* target) const;
};

// How an op takes bounds beyond the tensor.
enum class SelectionRule {
  // A range that is completely behind the tensor is an Error. A walk down ends after element 0
  // only for an end of -1.
  kStridedSlice,
  // Bounds move to the tensor's ends, so such a range selects nothing. A walk down also ends after
  // element 0 for an end from the back that is before it.
  kSetValue
};

class StridedSelection {
 public:
  // Of a tensor of shape `input`, by the attributes axes, starts, ends and strides (of set_value:
  // steps). Throws Error for a stride of 0, an end on the wrong side of its start, a range that the
  // rule doesn't allow, an axis that isn't there or is named twice, and for lists of different
  // lengths.
  StridedSelection(const OpContext& context, const Shape& input, SelectionRule rule);

  // The number of elements along each axis, -1 where it is unknown.
  const Shape& extent() const { return extent_; }
  bool keeps_rows() const { return keeps_rows_; }

  // Return the copy out of the tensor to a contiguous one, and the copy into it of elements that
  // are `strides` apart along each axis (0 repeats an element). The shape must be known.
  SelectionCopy CopyOut(DType dtype) const;
  SelectionCopy CopyIn(std::array<int64_t, Shape::kMaxRank> strides, DType dtype) const;

 private:
  // The elements of one axis: first, first + stride, …
  struct Walk {
    int64_t first = 0;
    int64_t stride = 1;
    int64_t count = 0;
  };
  struct Range {
    int64_t start = 0;
    int64_t end = 0;
    int64_t stride = 1;
  };
  static Range FromFront(const Range& range, int64_t extent, SelectionRule rule);
  static Walk WalkAlong(const Range& range, int64_t extent, SelectionRule rule,
                        const std::string& what);

  Shape input_;
  std::array<Walk, Shape::kMaxRank> walks_;
  Shape extent_;
  bool keeps_rows_ = true;
};

}  // namespace skiff
