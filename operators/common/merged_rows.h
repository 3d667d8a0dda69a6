// The row numbers of selected rows in order, each once, with the slots that hold it: what ops that
// must not take a repeated row for two do their work by.
#pragma once

#include <cstdint>
#include <span>

#include "framework/op/kernel.h"

namespace skiff {

// A view of the workspace that MergeRows has filled. Rows are numbered [0, count).
class MergedRows {
 public:
  // The different rows that are there; unused slots don't count.
  int64_t count() const { return count_; }
  // The number of the i-th row; ascending.
  int64_t row(int64_t i) const { return numbers_[i]; }
  // The slots that hold it, at least one, in order of occurrence.
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

// What MergeRows needs for n slots.
int64_t MergedRowsWorkspaceBytes(int64_t n);

// `workspace` holds MergedRowsWorkspaceBytes(rows.size()) bytes, aligned for int64, as long as the
// result is used. Allocates nothing; n log n. Error (kOutOfRange) for a row outside [-1, height).
MergedRows MergeRows(std::span<const int64_t> rows, int64_t height, void* workspace);

// sums[0, end - begin) = columns [begin, end) of the slots, added in their order; values are
// [n, width]. `sums` may be the columns of the first slot. On the calling thread. T is float or
// double.
template <typename T>
void AddSlots(const T* values, int64_t width, std::span<const int64_t> slots, int64_t begin,
              int64_t end, T* sums);

// The sum of the squares of the dense tensor that selected rows stand for: repeated rows are added
// first. Threaded; the same bits for any number of threads. T is float or double.
template <typename T>
class MergedSquares {
 public:
  // For the selected rows X[i] of the op that is prepared; asks for workspace.
  explicit MergedSquares(PrepareContext& context, size_t i = 0);
  double Of(const KernelContext& run, const Tensor& x) const;

 private:
  int merge_workspace_ = 0;
  int row_sums_ = 0;  // workspace
};

}  // namespace skiff
