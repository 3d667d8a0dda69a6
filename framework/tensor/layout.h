// How the elements of a tensor lie in memory.
#pragma once

#include <cstdint>
#include <ostream>

#include "framework/base/dtype.h"
#include "framework/tensor/shape.h"

namespace skiff {

// kPlain: row-major over the shape (NCHW for an image batch).
// Blocked by B: a [N, C, H, W] tensor lies as [N, ceil(C/B), H, W, B]; the channels that fill up
// the last block are zero. Only activations inside a plan are blocked: what a user sees, feeds,
// feeds or saves is plain.
// Selected rows of a dense tensor of `height` rows: values [n, D, …], row-major, and behind them,
// at the next multiple of 8 bytes, the n row numbers as int64. A row may be there more than once:
// the tensor meant is the sum of its values. A row number of -1 marks an unused slot, whose values
// are undefined. All others are in [0, height): whoever makes selected rows sees to that.
struct Layout {
  int32_t channel_block = 1;
  bool selected_rows = false;
  int64_t height = -1;  // of selected rows; outside of a run -1 is legal: unknown

  static Layout Plain() { return {}; }
  static Layout Blocked(int32_t block) {
    Layout layout;
    layout.channel_block = block;
    return layout;
  }
  static Layout SelectedRows(int64_t height) {
    Layout layout;
    layout.selected_rows = true;
    layout.height = height;
    return layout;
  }

  bool is_plain() const { return !is_blocked() && !selected_rows; }
  bool is_blocked() const { return channel_block != 1; }
  friend bool operator==(const Layout&, const Layout&) = default;
};

// Elements that a tensor of `shape` occupies, padding included; of selected rows the values. Error
// for a blocked layout of a rank below 2, for selected rows of rank 0, for an unknown dim and for
// overflow.
int64_t StorageElements(const Shape& shape, Layout layout);

// The same in bytes, row numbers included.
int64_t StorageBytes(const Shape& shape, DType dtype, Layout layout);

// Where the row numbers of selected rows begin, in bytes behind the first value.
int64_t RowNumbersOffset(const Shape& shape, DType dtype);

// The shape of the dense tensor that `shape` stands for in this layout: of selected rows with
// `height` as dim 0.
Shape DenseShape(const Shape& shape, Layout layout);

// "plain", "blocked16" or "selected_rows(height 100)".
std::ostream& operator<<(std::ostream& stream, Layout layout);

}  // namespace skiff
