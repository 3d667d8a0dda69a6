#include "operators/common/selected_rows.h"

#include <cstring>

#include "framework/base/error.h"

namespace skiff {

void CopyRowNumbers(const Tensor& from, Tensor* to) {
  const std::span<const int64_t> rows = from.rows();
  if (rows.empty() || rows.data() == to->rows().data()) return;
  std::memcpy(to->rows().data(), rows.data(), rows.size_bytes());
}

void CheckRowNumbers(std::span<const int64_t> rows, int64_t height) {
  for (size_t i = 0; i < rows.size(); ++i) {
    SKIFF_ENFORCE(rows[i] >= -1 && rows[i] < height, kOutOfRange, "selected rows: row number ",
                  rows[i], " in slot ", i, ", expected one in [0, ", height, "), or -1");
  }
}

template <typename T>
void AddSelectedRows(const Tensor& rows, T* dense) {
  AddSelectedRows(rows, rows.data<T>(), dense);
}

template <typename T>
void AddSelectedRows(const Tensor& rows, const T* values, T* dense) {
  CheckRowNumbers(rows.rows(), rows.height());
  const int64_t width = RowWidth(rows.shape());
  const std::span<const int64_t> numbers = rows.rows();
  const auto slots = static_cast<int64_t>(numbers.size());
  // Threads share columns, not rows. So for each column, a repeated row belongs to one thread,
  // which adds it in order. A part is at least a cache line wide, so that threads don't write to
  // each other's lines.
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t grain = std::max(kLine, 8192 / std::max<int64_t>(1, slots));
  ParallelFor(width, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < slots; ++i) {
      if (numbers[static_cast<size_t>(i)] < 0) continue;
      T* to = dense + numbers[static_cast<size_t>(i)] * width;
      const T* from = values + i * width;
      for (int64_t column = begin; column < end; ++column) to[column] += from[column];
    }
  });
}

template void AddSelectedRows(const Tensor&, float*);
template void AddSelectedRows(const Tensor&, double*);
template void AddSelectedRows(const Tensor&, const float*, float*);
template void AddSelectedRows(const Tensor&, const double*, double*);

}  // namespace skiff
