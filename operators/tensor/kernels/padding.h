// Adding and removing a border around a tensor, for pad, pad2d and pad3d.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/op/registry.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {

// The widths of a tensor's borders: {before axis 0, after axis 0, before axis 1, …}. None is
// negative.
using Borders = std::vector<int64_t>;

// Throws Error for a width that doesn't fit into 32 bits. A program file may hold 64-bit values,
// whose sums could overflow.
void CheckBorderWidths(const Borders& borders, const std::string& op);

// Returns the shape of `x` with its borders. -1 stays unknown.
Shape PaddedShape(const Shape& x, const Borders& borders);
// Returns the reverse. Throws Error that names `op` for a dim smaller than its borders.
Shape UnpaddedShape(const Shape& out, const Borders& borders, const std::string& op);

// Throws Error if `dtype` can't hold the value of the attribute.
void CheckPadValue(const OpContext& context, std::string_view attr, DType dtype);

// Copies x and fills the border with one value. Construction allocates, Run doesn't. Threaded.
class ConstantPad {
 public:
  ConstantPad(const Shape& x, const Borders& borders);
  // T is a float, int32_t or int64_t. The arrays must not overlap.
  template <typename T>
  void Run(const T* x, T value, T* out) const;

 private:
  struct Axis {
    int64_t dim = 1;
    int64_t before = 0;
    int64_t after = 0;
    int64_t padded() const { return before + dim + after; }
  };
  // Returns the offset in x, in elements, of row `row` of out, or -1 if the row is in the border.
  int64_t SourceOf(int64_t row) const;

  std::vector<Axis> outer_;  // all axes but that of the rows
  Axis row_;
  int64_t rows_ = 1;  // the number of rows of out
};

// Copies a padded tensor without its border.
class Unpad {
 public:
  // `x` is the shape without border.
  Unpad(const Shape& x, const Borders& borders, DType dtype);
  void Run(const KernelContext& run, const void* padded, void* x) const;

 private:
  StridedCopy copy_;
  int64_t offset_bytes_ = 0;
};

}  // namespace skiff
