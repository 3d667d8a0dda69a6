// A tensor with a border around it: what pad and pad2d share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "operators/tensor/strided_copy_shared.h"

namespace skiff {

// Border widths of a tensor: {before axis 0, behind it, before axis 1, …}. None is negative.
using Borders = std::vector<int64_t>;

// Error for more elements than 32 bits count: files may carry 64, of which sums would overflow.
void CheckBorderWidths(const Borders& borders, const std::string& op);

// `x` with its borders; -1 stays unknown.
Shape PaddedShape(const Shape& x, const Borders& borders);
// The reverse. Error naming `op` for a dim smaller than its borders.
Shape UnpaddedShape(const Shape& out, const Borders& borders, const std::string& op);

// Error if the attribute pad_value can't be held in `dtype`.
void CheckPadValue(const OpContext& context, DType dtype);

// out = x, and one value in the border. Making one allocates, Run doesn't. Threaded.
class ConstantPad {
 public:
  ConstantPad(const Shape& x, const Borders& borders);
  // T is float, double, int32_t or int64_t; no overlap.
  template <typename T>
  void Run(const T* x, T value, T* out) const;

 private:
  struct Axis {
    int64_t dim = 1;
    int64_t before = 0;
    int64_t behind = 0;
    int64_t padded() const { return before + dim + behind; }
  };
  // Where row `row` of out comes from in x, in elements; -1 in the border.
  int64_t SourceOf(int64_t row) const;

  std::vector<Axis> outer_;  // all axes but the row
  Axis row_;
  int64_t rows_ = 1;  // of out
};

// The box of a padded tensor that is not border, into a tensor of its own.
class Unpad {
 public:
  // `x` is the shape without border.
  Unpad(const Shape& x, const Borders& borders, DType dtype);
  void Run(const void* padded, void* x) const;

 private:
  StridedCopy copy_;
  int64_t offset_bytes_ = 0;
};

}  // namespace skiff
