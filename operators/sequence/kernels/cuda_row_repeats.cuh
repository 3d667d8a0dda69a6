// Rows that are repeated, on a device; row_repeats.h is the CPU's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "operators/sequence/kernels/cuda_sequences.cuh"

namespace skiff {

// A group of neighbouring rows, and where the group's repeats are, one after the other.
struct RepeatGroup {
  friend bool operator==(const RepeatGroup&, const RepeatGroup&) = default;

  int64_t row = 0;  // its first one
  int64_t rows = 0;
  int64_t repeat = 0;  // the first row of its repeats
  int64_t times = 0;
};

struct RepeatGroups {
  const RepeatGroup* groups;
  int64_t count;

  // Returns the last group whose `first` (a member) isn't above `row`: among groups with rows
  // there, the group of the row.
  __device__ const RepeatGroup& GroupOf(int64_t RepeatGroup::*first, int64_t row) const {
    int64_t group = 0;
    int64_t after = count;
    while (after - group > 1) {
      const int64_t middle = (group + after) / 2;
      (groups[middle].*first <= row ? group : after) = middle;
    }
    return groups[group];
  }
};

// Sends the groups of a run.
class CudaRepeats {
 public:
  CudaRepeats(const PrepareContext& context, int64_t most_groups) : groups_(context, most_groups) {}

  // Group i is repeated as often as offsets i and i + 1 of `times` differ. `sequences` has the
  // offsets of the groups' rows; nullptr: each row is a group.
  RepeatGroups Send(const KernelContext& run, std::span<const uint64_t> times,
                    const std::vector<uint64_t>* sequences) {
    const auto count = static_cast<int64_t>(times.size()) - 1;
    int64_t repeat = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      RepeatGroup group = {.row = i, .rows = 1, .repeat = repeat, .times = 0};
      if (sequences != nullptr) {
        group.row = static_cast<int64_t>((*sequences)[at]);
        group.rows = static_cast<int64_t>((*sequences)[at + 1]) - group.row;
      }
      group.times = static_cast<int64_t>(times[at + 1] - times[at]);
      repeat += group.rows * group.times;
      groups_[i] = group;
    }
    return {groups_.Send(run), count};
  }

 private:
  CudaEntries<RepeatGroup> groups_;
};

struct RepeatMoves {
  RepeatGroups groups;

  __device__ RowMove operator()(int64_t row) const {
    const RepeatGroup& group = groups.GroupOf(&RepeatGroup::repeat, row);
    return {group.row + (row - group.repeat) % group.rows, row};
  }
};

// Writes the repeats of all groups of rows of x.
inline void RepeatRows(const KernelContext& run, const RepeatGroups& groups, int64_t row_bytes,
                       const Tensor& x, Tensor* repeats) {
  CopyRows(run, x.raw_data(), repeats->shape()[0], row_bytes, RepeatMoves{groups},
           repeats->raw_data());
}

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    SumOfRepeats(const T* gradient, RepeatGroups groups, int64_t rows, int64_t width,
                 int threads_of_row, T* x_gradient) {
  ForEachColumn(
      rows, width, threads_of_row,
      [&](int64_t row) { return groups.GroupOf(&RepeatGroup::row, row); },
      [&](int64_t row, int64_t column, const RepeatGroup& group) {
        const T* from = gradient + (group.repeat + row - group.row) * width + column;
        T sum = 0;
        for (int64_t k = 0; k < group.times; ++k) sum += from[k * group.rows * width];
        x_gradient[row * width + column] = sum;
      });
}

// Sets each row of x_gradient to the sum over its repeats in `gradient`.
template <typename T>
void SumRepeats(const KernelContext& run, const RepeatGroups& groups, int64_t width,
                const Tensor& gradient, Tensor* x_gradient) {
  const int64_t rows = x_gradient->shape()[0];
  if (rows == 0) return;
  const RowThreads threads(rows, width);
  SumOfRepeats<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
      gradient.data<T>(), groups, rows, width, threads.of_row, x_gradient->data<T>());
  CheckLaunch("sum of repeats");
}

}  // namespace skiff
