#include "operators/common/merged_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/selected_rows.h"

namespace skiff {
namespace {

// The number of columns in which repeated rows are added at a time.
constexpr int64_t kColumns = 512;

// Writes the slots in use to `slots`, in order. Returns their number.
int64_t ListSlots(std::span<const int64_t> rows, int64_t height, int64_t* slots) {
  CheckRowNumbers(rows, height);
  int64_t count = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= 0) slots[count++] = static_cast<int64_t>(i);
  }
  return count;
}

}  // namespace

int64_t MergedRowsWorkspaceBytes(int64_t n) {
  return ByteCount(AddCounts(MultiplyCounts(n, 3), 1), DType::kInt64);
}

MergedRows MergeRows(std::span<const int64_t> rows, int64_t height, void* workspace) {
  MergedRows merged;
  merged.slots_ = static_cast<int64_t*>(workspace);
  merged.numbers_ = merged.slots_ + rows.size();
  merged.begins_ = merged.numbers_ + rows.size();
  // One workspace of 3n + 1 numbers: the slots, sorted by row; the different rows; and where each
  // of these begins among the slots.
  const int64_t used = ListSlots(rows, height, merged.slots_);
  const auto row_of = [&](int64_t slot) { return rows[static_cast<size_t>(slot)]; };
  // Comparing slots, too, makes the order unique. std::stable_sort would allocate.
  std::sort(merged.slots_, merged.slots_ + used, [&](int64_t a, int64_t b) {
    return row_of(a) != row_of(b) ? row_of(a) < row_of(b) : a < b;
  });
  for (int64_t i = 0; i < used; ++i) {
    const int64_t row = row_of(merged.slots_[i]);
    if (merged.count_ > 0 && merged.numbers_[merged.count_ - 1] == row) continue;
    merged.numbers_[merged.count_] = row;
    merged.begins_[merged.count_++] = i;
  }
  merged.begins_[merged.count_] = used;
  return merged;
}

template <typename T>
void AddSlots(const T* values, int64_t width, std::span<const int64_t> slots, int64_t begin,
              int64_t end, T* sums) {
  const auto part = [&](size_t i) { return values + slots[i] * width + begin; };
  if (slots.size() == 1) {
    std::memmove(sums, part(0), static_cast<size_t>(end - begin) * sizeof(T));
    return;
  }
  AddArrays(part(0), part(1), sums, end - begin);
  for (size_t i = 2; i < slots.size(); ++i) AddArrays(sums, part(i), sums, end - begin);
}

template <typename T>
MergedSquares<T>::MergedSquares(PrepareContext& context, size_t i) {
  const int64_t slots = context.Input("X", i).shape[0];
  merge_workspace_ = context.RequestWorkspace(MergedRowsWorkspaceBytes(slots));
  row_sums_ = context.RequestWorkspace(ByteCount(slots, DType::kFloat64));
}

template <typename T>
double MergedSquares<T>::Of(const KernelContext& run, const Tensor& x) const {
  const MergedRows rows = MergeRows(x.rows(), x.height(), run.workspace(merge_workspace_));
  const int64_t width = RowWidth(x.shape());
  const T* values = x.data<T>();
  auto* row_sums = static_cast<double*>(run.workspace(row_sums_));
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, width));
  ParallelFor(rows.count(), grain, [&](int64_t first, int64_t last) {
    T sums[kColumns];
    for (int64_t i = first; i < last; ++i) {
      row_sums[i] = 0;
      for (int64_t begin = 0; begin < width; begin += kColumns) {
        const int64_t end = std::min(width, begin + kColumns);
        AddSlots(values, width, rows.slots(i), begin, end, sums);
        // One sum per row, added in order below, so that the number of threads changes no bit.
        row_sums[i] += SumOfSquares(sums, end - begin);
      }
    }
  });
  return std::accumulate(row_sums, row_sums + rows.count(), 0.0);
}

template void AddSlots(const float*, int64_t, std::span<const int64_t>, int64_t, int64_t, float*);
template void AddSlots(const double*, int64_t, std::span<const int64_t>, int64_t, int64_t, double*);
template class MergedSquares<float>;
template class MergedSquares<double>;

}  // namespace skiff
