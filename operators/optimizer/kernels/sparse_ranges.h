// The ranges into which a gradient of selected rows cuts its parameter.
#pragma once

#include <cstdint>

#include "framework/tensor/tensor.h"
#include "operators/optimizer/kernels/range_list.h"
#include "operators/optimizer/kernels/update_range.h"

namespace skiff {

// Which rows of a parameter a sparse gradient updates.
enum class SparseRows {
  kTouched,  // the rows that the gradient has
  kAll,      // all rows; rows that the gradient lacks, by a gradient of 0
};

// Appends a range for each row of the selected rows `grad` and, with kAll, one for the rows between
// two such rows, in the order of rows: at most 2n + 1 ranges for n slots. `whole` is the parameter,
// without a gradient. The values of `grad` are in `values`; a row's gradient is the sum of its
// slots in order of occurrence. The rows between have none, which means 0.
//
// `merge_workspace` has MergedRowsWorkspaceBytes(n) bytes, `sums` as many elements as `grad`. Both,
// and `values`, must outlive the ranges. Throws Error (kOutOfRange) for a row that the parameter
// lacks.
template <typename T>
void AppendRowRanges(const UpdateRange<T>& whole, const Tensor& grad, const T* values,
                     SparseRows rows, void* merge_workspace, T* sums, RangeList<T>* ranges);

}  // namespace skiff
