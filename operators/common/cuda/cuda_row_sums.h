// Sums of rows on a device: of all positions that name a row, in their order.
//
// The positions are sorted by row (cuda_row_sort.h). Then the sorted list is cut into chunks, and a
// thread adds up the elements of a column in a chunk, so that a row with many positions keeps as
// many threads busy as many rows with few. A row within a chunk is written at once; the sums of a
// row that reaches across chunks are added in a second pass. So the order of a sum depends on
// nothing but the row numbers.
#pragma once

#include <cstdint>

#include "framework/op/kernel.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cuda/cuda_row_sort.h"
#include "operators/common/half.h"

namespace skiff {

// The sums of rows, with the room that they need. T is float, double, half, uint32_t or uint64_t.
// Sums of half are float, rounded once. The kernels are compiled once, in cuda_row_sums.cu.
template <typename T>
class CudaRowSums {
 public:
  // For up to `capacity` positions and `columns` columns.
  CudaRowSums(PrepareContext& context, int64_t capacity, int64_t columns);

  // RowSort::rows.
  int32_t* rows(const KernelContext& run) const { return sort_.rows(run); }

  // Sort rows(run) and set out[o, r, :] to the sum of values[o, i, :] over all i whose row is r, or
  // add it. Other rows stay as they are.
  void Set(const KernelContext& run, const AxisExtents& axis, int64_t count, const void* values,
           void* out) const {
    SortAndAddUp(run, axis, count, values, /*adds=*/false, out);
  }
  void Add(const KernelContext& run, const AxisExtents& axis, int64_t count, const void* values,
           void* out) const {
    SortAndAddUp(run, axis, count, values, /*adds=*/true, out);
  }

  // Sorts rows(run).
  SortedRows Sort(const KernelContext& run, int64_t count, int64_t length) const {
    return sort_.Sort(run, count, length);
  }
  // Sets sums[targets[k], :], [width], to the sum of values[i, :] over all positions i of a row,
  // where k is the row's first place in the sorted list. With targets = sorted.positions the sum is
  // at the row's first position, and `sums` may then be `values`. The rest of `sums` stays as it
  // is.
  void SetAt(const KernelContext& run, const SortedRows& sorted, const uint32_t* targets,
             int64_t width, const void* values, void* sums) const;
  // Adds the sums of rows of [width] to the rows of `dense`.
  void AddSorted(const KernelContext& run, const SortedRows& sorted, int64_t width,
                 const void* values, void* dense) const;

 private:
  void SortAndAddUp(const KernelContext& run, const AxisExtents& axis, int64_t count,
                    const void* values, bool adds, void* out) const;
  void AddUp(const KernelContext& run, const SortedRows& sorted, const AxisExtents& axis,
             const uint32_t* targets, const void* values, bool adds, void* out) const;

  RowSort sort_;
  int partials_ = -1;
};

extern template class CudaRowSums<float>;
extern template class CudaRowSums<double>;
extern template class CudaRowSums<BFloat16>;
extern template class CudaRowSums<Float16>;
extern template class CudaRowSums<uint32_t>;
extern template class CudaRowSums<uint64_t>;

}  // namespace skiff
