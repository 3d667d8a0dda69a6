#include "operators/optimizer/kernels/sparse_ranges.h"

#include "framework/base/parallel.h"
#include "operators/common/merged_rows.h"
#include "operators/common/selected_rows.h"

namespace skiff {
namespace {

// Returns elements [begin, end) of a range.
template <typename T>
UpdateRange<T> Part(const UpdateRange<T>& whole, int64_t begin, int64_t end) {
  UpdateRange<T> part = whole.From(begin);
  part.count = end - begin;
  return part;
}

// Returns the gradient of row i: the values of its only slot, or the sum of its slots. The sum is
// stored at the place of the first slot, so `sums` needs no other index.
template <typename T>
const T* RowGradient(const T* values, const MergedRows& rows, int64_t i, int64_t width, T* sums) {
  const int64_t first = rows.slots(i)[0] * width;
  return (rows.slots(i).size() == 1 ? values : sums) + first;
}

}  // namespace

template <typename T>
void AppendRowRanges(const UpdateRange<T>& whole, const Tensor& grad, const T* values,
                     SparseRows which, void* merge_workspace, T* sums, RangeList<T>* ranges) {
  const MergedRows rows = MergeRows(grad.rows(), grad.height(), merge_workspace);
  const int64_t width = RowWidth(grad.shape());
  // A row with one slot needs no sum: its gradient is read in place.
  ParallelFor(rows.count(), 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (rows.slots(i).size() == 1) continue;
      AddSlots(values, width, rows.slots(i), 0, width, sums + rows.slots(i)[0] * width);
    }
  });
  int64_t done = 0;  // rows
  const auto append_gap = [&](int64_t end) {
    if (which == SparseRows::kAll && end > done) {
      ranges->Append(Part(whole, done * width, end * width));
    }
  };
  for (int64_t i = 0; i < rows.count(); ++i) {
    const int64_t row = rows.row(i);
    append_gap(row);
    UpdateRange<T> range = Part(whole, row * width, (row + 1) * width);
    range.grad = RowGradient(values, rows, i, width, sums);
    ranges->Append(range);
    done = row + 1;
  }
  append_gap(grad.height());
}

template void AppendRowRanges(const UpdateRange<float>&, const Tensor&, const float*, SparseRows,
                              void*, float*, RangeList<float>*);
template void AppendRowRanges(const UpdateRange<double>&, const Tensor&, const double*, SparseRows,
                              void*, double*, RangeList<double>*);

}  // namespace skiff
