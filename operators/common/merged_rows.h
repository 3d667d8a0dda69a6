// The row numbers of selected rows in ascending order, each once, with the places where it occurs.
// For ops that must not treat a repeated row as two rows.
#pragma once

#include <cstdint>
#include <span>

#include "framework/op/kernel.h"

namespace skiff {

// A view of the workspace that MergeRows filled. "Slot" here is a position among the rows held.
class MergedRows {
 public:
  // The number of different rows; unused slots don't count.
  int64_t count() const { return count_; }
  // The row number of the i-th row, in ascending order.
  int64_t row(int64_t i) const { return numbers_[i]; }
  // The slots that hold the i-th row, at least one, in order of occurrence.
  std::span<const int64_t> slots(int64_t i) const {
    return {slots_ + begins_[i], static_cast<size_t>(begins_[i + 1] - begins_[i])};
  }

 private:
  friend MergedRows MergeRows(std::span<const int64_t>, int64_t, void*);

  int64_t count_ = 0;
  int64_t* numbers_ = nullptr;
  int64_t* slots_ = nullptr;
  int64_t* begins_ = nullptr;  // of each row in slots_, and the end
};

// Returns the workspace that MergeRows needs for n slots.
int64_t MergedRowsWorkspaceBytes(int64_t n);

// Returns the rows in order. `workspace` must hold MergedRowsWorkspaceBytes(rows.size()) bytes,
// aligned for int64, while the result is used. Allocates nothing; takes O(n log n) time. Throws
// Error (kOutOfRange) for a row outside [-1, height).
MergedRows MergeRows(std::span<const int64_t> rows, int64_t height, void* workspace);

// Sets sums[0, end - begin) to the sums of columns [begin, end) over the slots, added in their
// order. `values` is [n, width]. `sums` may be the columns of the first slot. Runs on the calling
// thread. T is float or double.
template <typename T>
void AddSlots(const T* values, int64_t width, std::span<const int64_t> slots, int64_t begin,
              int64_t end, T* sums);

// The sum of squares of the dense tensor that selected rows represent: repeated rows are added
// before they are squared. Threaded; gives the same bits for any number of threads. T is float or
// double.
template <typename T>
class MergedSquares {
 public:
  // Prepares it for the selected rows X[i] of an op and requests workspace.
  explicit MergedSquares(PrepareContext& context, size_t i = 0);
  double Of(const KernelContext& run, const Tensor& x) const;

 private:
  int merge_workspace_ = 0;
  int row_sums_ = 0;  // workspace
};

}  // namespace skiff
