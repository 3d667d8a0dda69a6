// A stable sort of row numbers on a device, for sums over all positions that name a row, in a fixed
// order (cuda_row_sums.h).
#pragma once

#include <cstdint>

#include "framework/op/kernel.h"

namespace skiff {

// The numbers of rows in ascending order, and their positions, ascending among equals. A number of
// `length` or more belongs to no row; they are the last.
struct SortedRows {
  const uint32_t* rows;
  const uint32_t* positions;
  int64_t count;
  uint32_t length;
};

// Throws Error (kUnimplemented), naming the op, if a tensor has more rows than row numbers on a
// device can name.
void CheckDeviceRows(const OpContext& context, int64_t length);

class RowSort {
 public:
  // For up to `capacity` numbers.
  RowSort(PrepareContext& context, int64_t capacity);

  // Where the numbers must be before Sort. Negative numbers belong to no row.
  int32_t* rows(const KernelContext& run) const {
    return static_cast<int32_t*>(run.workspace(workspace_));
  }

  // Sorts the first `count` of them.
  SortedRows Sort(const KernelContext& run, int64_t count, int64_t length) const;

 private:
  int64_t capacity_;
  int workspace_ = -1;
};

}  // namespace skiff
