// Common code of CUDA kernels on selected rows, whose values and row numbers are both in the
// device's memory. Includes none of CUDA's headers; the kernels are compiled once, in
// cuda_selected_rows.cu.
#pragma once

#include <cstdint>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_bytes.h"
#include "operators/common/cuda/cuda_row_sums.h"
#include "operators/common/selected_rows.h"

namespace skiff {

// CopyRowNumbers.
void CopyRowNumbersOnDevice(const KernelContext& run, const Tensor& from, Tensor* to);

// The sums of repeated rows, in their order. T is float or double.
template <typename T>
class CudaMergedRows {
 public:
  // Prepares it for selected rows of at most as many slots, and requests workspace. Throws Error if
  // there are too many for a device.
  CudaMergedRows(PrepareContext& context, const TensorMeta& x);

  // Sorts the slots of `x` by row. Unused ones come last, and so do numbers that are no row's: the
  // op that made the rows has refused such ids. The result is in a workspace.
  SortedRows Sort(const KernelContext& run, const Tensor& x) const;

  // Sets the sum of each row of [width] at the row's first slot, as CudaRowSums::SetAt does.
  void SetAtFirst(const KernelContext& run, const SortedRows& sorted, int64_t width,
                  const T* values, T* sums) const {
    sums_.SetAt(run, sorted, sorted.positions, width, values, sums);
  }
  // For every row r, sets slots[r] to its first slot, or to -1 if it has none.
  void SetFirstSlots(const KernelContext& run, const SortedRows& sorted, int32_t* slots) const;
  const CudaRowSums<T>& sums() const { return sums_; }

  // dense[r, :] += the sum of row r, for selected rows `x` with these values.
  void AddTo(const KernelContext& run, const Tensor& x, const T* values, T* dense) const;

 private:
  CudaRowSums<T> sums_;
};

extern template class CudaMergedRows<float>;
extern template class CudaMergedRows<double>;

}  // namespace skiff
