// Sums over the rows of a matrix, such as the gradients of an operand that is repeated for each
// row. The sums of rows of half are those of float32.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/parallel.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/nn/kernels/image_window.h"

namespace skiff {

// Adds up several arrays of one number per column while it visits the rows. Rows are cut into
// parts, which depend on the sizes alone, each with sums of its own: WideType<T> for some rows,
// then float64. The sums are the same for any number of threads.
class RowSums {
 public:
  // Of `rows` rows with `size` columns.
  RowSums(int64_t rows, int64_t size, int64_t arrays)
      : rows_(rows),
        size_(size),
        line_(size * arrays),
        parts_(std::clamp<int64_t>(
            std::min(rows / kMinPartRows, kMaxPartElements / std::max<int64_t>(size, 1)), 1,
            kMaxParts)) {}

  // The bytes of `memory` below.
  template <typename T>
  int64_t bytes() const {
    return parts_ * line_ * static_cast<int64_t>(sizeof(double) + sizeof(WideType<T>));
  }

  // Calls visit(row, sums, the thread's rows) for each row, on several threads. `visit` adds the
  // row's terms to array k at sums + k * size.
  template <typename T, typename Visit>
  void AddRows(const KernelContext& run, const ThreadScratch<T>& scratch, void* memory,
               const Visit& visit) const {
    const auto add = [&](int64_t part, const WideRows<T>& wide) {
      AddPart(memory, part, wide, visit);
    };
    scratch.ForEach(run, parts_, GrainOf(rows_ / parts_ * size_), add);
  }

  // Calls visit(row, sums) in the same way.
  template <typename T, typename Visit>
  void AddRows(void* memory, const Visit& visit) const {
    ParallelFor(parts_, GrainOf(rows_ / parts_ * size_), [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        AddPart(memory, part, WideRows<T>(),
                [&](int64_t row, WideType<T>* sums, const WideRows<T>&) { visit(row, sums); });
      }
    });
  }

  // Writes the sums of array k to `out`, unless that is nullptr.
  template <typename T>
  void Write(const void* memory, int64_t k, T* out) const {
    if (out == nullptr) return;
    const double* totals = static_cast<const double*>(memory) + k * size_;
    ParallelFor(size_, GrainOf(parts_), [=, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        double sum = 0;
        for (int64_t part = 0; part < parts_; ++part) sum += totals[part * line_ + i];
        out[i] = static_cast<T>(static_cast<WideType<T>>(sum));
      }
    });
  }

 private:
  static constexpr int64_t kMinPartRows = 16;
  static constexpr int64_t kMaxParts = 64;
  static constexpr int64_t kMaxPartElements = 1 << 20;
  static constexpr int64_t kRowsOfT = 64;  // that WideType<T> adds up

  template <typename T, typename Visit>
  void AddPart(void* memory, int64_t part, const WideRows<T>& wide, const Visit& visit) const {
    double* totals = static_cast<double*>(memory) + part * line_;
    WideType<T>* sums =
        reinterpret_cast<WideType<T>*>(static_cast<double*>(memory) + parts_ * line_) +
        part * line_;
    std::fill_n(totals, line_, 0.0);
    std::fill_n(sums, line_, WideType<T>{0});
    const int64_t first = rows_ * part / parts_;
    const int64_t end = rows_ * (part + 1) / parts_;
    for (int64_t row = first; row < end; ++row) {
      visit(row, sums, wide);
      if (row + 1 < end && (row + 1 - first) % kRowsOfT != 0) continue;
      for (int64_t i = 0; i < line_; ++i) totals[i] += static_cast<double>(sums[i]);
      std::fill_n(sums, line_, WideType<T>{0});
    }
  }

  int64_t rows_;
  int64_t size_;
  int64_t line_;  // numbers in all arrays together
  int64_t parts_;
};

}  // namespace skiff
