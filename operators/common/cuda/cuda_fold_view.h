// Reductions over axes on CUDA: the reduced axes, and how the work is shared among threads.
// Includes little and none of CUDA's headers; cuda_fold_tiles.cuh has the kernel.
//
// A block takes a tile: some outputs (slots), each shared by some threads, neighbours of which read
// neighbouring elements. If there are few tiles, each output is cut into parts, which another
// launch joins. All of that depends on sizes alone, and so does the order of sums.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_launch_size.h"

namespace skiff {

class Shape;

// Dims of nested loops, the innermost first: at least one.
struct CudaDims {
  static constexpr int kMaxRank = 9;  // Shape's

  int count = 1;
  int64_t sizes[kMaxRank] = {1};
  int64_t strides[kMaxRank] = {0};

  // `merges`: the dim continues the outermost one in memory.
  constexpr void AddOutside(int64_t size, int64_t stride, bool merges) {
    if (count == 1 && sizes[0] == 1) {
      sizes[0] = size;
      strides[0] = stride;
    } else if (merges) {
      sizes[count - 1] *= size;
    } else {
      sizes[count] = size;
      strides[count] = stride;
      ++count;
    }
  }

  // Returns the place of an index whose dims before `first` are 0 and left out.
  constexpr int64_t PlaceOf(int64_t index, int first = 0) const {
    int64_t place = 0;
    for (int i = first; i < count - 1; ++i) {
      const CudaDivision at = Divide(index, sizes[i]);
      place += at.rest * strides[i];
      index = at.quotient;
    }
    return first < count ? place + index * strides[count - 1] : place;
  }
};

// A contiguous tensor and the axes that are reduced. Neighbouring axes of one kind are merged.
class CudaFoldView {
 public:
  // One number.
  CudaFoldView() = default;
  // The shape must be known. In cuda_fold.cuh.
  CudaFoldView(const Shape& shape, const std::array<bool, CudaDims::kMaxRank>& is_reduced);
  // A matrix whose rows are reduced to one.
  CudaFoldView(int64_t rows, int64_t columns) {
    AddOutside(columns, false);
    AddOutside(rows, true);
  }

  // Adds an axis outside of the others. There may be CudaDims::kMaxRank of each kind.
  void AddOutside(int64_t size, bool is_reduced) {
    const int64_t stride = outputs * elements;
    (is_reduced ? elements : outputs) *= size;
    if (size == 1) return;
    if (stride == 1) neighbours_reduce = is_reduced;
    (is_reduced ? reduced : kept)
        .AddOutside(size, stride, stride > 1 && is_reduced == outermost_is_reduced_);
    outermost_is_reduced_ = is_reduced;
  }

  CudaDims kept;
  CudaDims reduced;
  int64_t outputs = 1;
  int64_t elements = 1;  // that make up an output; may be 0
  bool neighbours_reduce = true;

 private:
  bool outermost_is_reduced_ = true;
};

// How a view is cut.
struct CudaFoldCut {
  // Enough blocks for all multiprocessors.
  static constexpr int64_t kBlocks = 1024;
  // The least elements of a thread that make a part worth its own result.
  static constexpr int64_t kLeast = 8;
  static constexpr int64_t kThreads = kCudaThreads;

  explicit CudaFoldCut(const CudaFoldView& view, bool may_part = true) {
    const auto power = [](int64_t least, int64_t most) {
      int64_t result = 1;
      while (result < std::min(least, most)) result *= 2;
      return result;
    };
    if (view.neighbours_reduce) {
      // Some elements for each thread, but whole warps if there are enough elements for one; a
      // block for each output if there are few.
      const bool has_few_outputs = view.outputs < kBlocks;
      threads = power(view.elements, has_few_outputs ? kThreads : 32);
      while (!has_few_outputs && threads < kThreads && threads * kLeast * 2 < view.elements) {
        threads *= 2;
      }
      slots = kThreads / threads;
    } else {
      slots = power(view.kept.sizes[0], 32);
      threads = std::min(power(view.elements, kThreads), kThreads / slots);
      slots = kThreads / threads;
    }
    tiles = (view.outputs + slots - 1) / slots;
    if (may_part && tiles > 0) {
      parts = std::clamp<int64_t>(std::min(kBlocks / tiles, view.elements / (threads * kLeast)), 1,
                                  kBlocks);
    }
    part = (view.elements + parts - 1) / parts;
  }

  // Returns the most results of parts of a tensor of at most so many elements, whatever the axes.
  // Where there are parts, a tile has at most 32 slots, of 8 threads or more.
  static int64_t MostResults(int64_t elements) {
    return std::min(elements / (kLeast * 8), kBlocks * 32);
  }

  int64_t slots = 1;    // of a tile
  int64_t threads = 1;  // of a slot
  int64_t tiles = 0;
  int64_t parts = 1;
  int64_t part = 0;  // elements
};

}  // namespace skiff
