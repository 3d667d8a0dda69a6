// Rows that are repeated, for sequence_expand and sequence_expand_as.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "framework/base/parallel.h"
#include "framework/tensor/tensor.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {

// Groups of neighbouring rows. Group i is repeated as often as offsets i and i + 1 of `times`
// differ, and the repeats of the next group follow.
class RowRepeats {
 public:
  // Each row is a group.
  explicit RowRepeats(std::span<const uint64_t> times) : times_(times) {}
  // Each sequence is a group. There are as many as offsets in `times`.
  RowRepeats(std::span<const uint64_t> times, std::span<const uint64_t> sequences)
      : times_(times), sequences_(SequenceRows(sequences)) {}

  int64_t size() const { return times_.size(); }

  // Calls body(the group's rows, how often it is repeated, the first row of the repeats) for groups
  // [begin, end) that have rows.
  template <typename Body>
  void ForEach(int64_t begin, int64_t end, const Body& body) const {
    int64_t first = 0;
    for (int64_t i = 0; i < begin; ++i) first += RowsOf(i).count() * times_[i].count();
    for (int64_t i = begin; i < end; ++i) {
      const RowRange rows = RowsOf(i);
      const int64_t times = times_[i].count();
      if (rows.count() > 0) body(rows, times, first);
      first += rows.count() * times;
    }
  }

 private:
  RowRange RowsOf(int64_t i) const { return sequences_ ? (*sequences_)[i] : RowRange{i, i + 1}; }

  SequenceRows times_;
  std::optional<SequenceRows> sequences_;
};

// Writes the repeats of all groups of rows of x.
template <typename T>
void RepeatRows(const RowRepeats& groups, int64_t width, const T* x, Tensor* repeats) {
  T* out = repeats->data<T>();
  const int64_t grain = SequenceGrain(groups.size(), repeats->element_count());
  ParallelFor(groups.size(), grain, [&](int64_t begin, int64_t end) {
    groups.ForEach(begin, end, [&](const RowRange& rows, int64_t times, int64_t first) {
      const int64_t count = rows.count() * width;
      for (int64_t k = 0; k < times; ++k)
        std::copy_n(x + rows.begin * width, count, out + first * width + k * count);
    });
  });
}

// Sets each group of rows of x_gradient to the sum over the group's repeats in `gradient`.
template <typename T>
void SumRepeats(const RowRepeats& groups, int64_t width, const Tensor& gradient, T* x_gradient) {
  const T* from = gradient.data<T>();
  const int64_t grain = SequenceGrain(groups.size(), gradient.element_count());
  ParallelFor(groups.size(), grain, [&](int64_t begin, int64_t end) {
    groups.ForEach(begin, end, [&](const RowRange& rows, int64_t times, int64_t first) {
      const int64_t count = rows.count() * width;
      T* sum = x_gradient + rows.begin * width;
      if (times == 0) std::fill_n(sum, count, T{0});
      if (times > 0) std::copy_n(from + first * width, count, sum);
      for (int64_t k = 1; k < times; ++k) {
        const T* repeat = from + first * width + k * count;
        for (int64_t i = 0; i < count; ++i) sum[i] += repeat[i];
      }
    });
  });
}

}  // namespace skiff
