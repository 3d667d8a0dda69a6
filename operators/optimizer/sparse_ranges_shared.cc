#include "operators/optimizer/sparse_ranges_shared.h"

#include "framework/base/parallel.h"
#include "operators/common/merged_rows.h"
#include "operators/common/selected_rows.h"

namespace skiff {
namespace {

// Elements [begin, end) of a range.
template <typename T>
UpdateRange<T> Part(const UpdateRange<T>& whole, int64_t begin, int64_t end) {
  UpdateRange<T> part = whole.From(begin);
  part.count = end - begin;
  return part;
}

// The first slot's values, to which those of the others have been added if there are any.
template <typename T>
const T* RowGradient(const T* values, const MergedRows& rows, int64_t i, int64_t width, T* sums) {
  const int64_t first = rows.slots(i)[0] * width;
  return (rows.slots(i).size() == 1 ? values : sums) + first;
}

}  // namespace

template <typename T>
void AppendRowRanges(const UpdateRange<T>& whole, const Tensor& grad, const T* values,
                     SparseRows which, void* merge_workspace, T* sums,
                     std::vector<UpdateRange<T>>* ranges) {
  const MergedRows rows = MergeRows(grad.rows(), grad.height(), merge_workspace);
  const int64_t width = RowWidth(grad.shape());
  ParallelFor(rows.count(), 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (rows.slots(i).size() == 1) continue;
      AddSlots(values, width, rows.slots(i), 0, width, sums + rows.slots(i)[0] * width);
    }
  });
  int64_t done = 0;  // rows
  const auto append_gap = [&](int64_t end) {
    if (which == SparseRows::kAll && end > done) {
      ranges->push_back(Part(whole, done * width, end * width));
    }
  };
  for (int64_t i = 0; i < rows.count(); ++i) {
    const int64_t row = rows.row(i);
    append_gap(row);
    ranges->push_back(Part(whole, row * width, (row + 1) * width));
    ranges->back().grad = RowGradient(values, rows, i, width, sums);
    done = row + 1;
  }
  append_gap(grad.height());
}

template void AppendRowRanges(const UpdateRange<float>&, const Tensor&, const float*, SparseRows,
                              void*, float*, std::vector<UpdateRange<float>>*);
template void AppendRowRanges(const UpdateRange<double>&, const Tensor&, const double*, SparseRows,
                              void*, double*, std::vector<UpdateRange<double>>*);

}  // namespace skiff
