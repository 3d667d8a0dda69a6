// The copy loop of all ops that move elements without reading them: transpose, slice, concat,
// split, reshape, tile, flip.
//
// A StridedCopy moves a box of elements between two strided layouts. The constructor sorts and
// merges the axes and picks the inner loop. Neither it nor Run allocates, so a kernel can make a
// copy in each run, for its rows. One thread at a time may call Run, with any two buffers that
// don't overlap.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "framework/tensor/shape.h"

namespace skiff {

// Returns the row-major strides of `shape`, in elements.
std::array<int64_t, Shape::kMaxRank> RowMajorStrides(const Shape& shape);

class StridedCopy {
 public:
  // Enough for a tensor each of whose axes is cut in two, as in tile.
  static constexpr int kMaxAxes = 2 * Shape::kMaxRank;

  StridedCopy() = default;  // copies nothing
  // The box has `dims[i]` elements along axis i, which are `source_strides[i]` and
  // `target_strides[i]` elements apart. Strides may be negative. A stride of 0 in the source
  // repeats an element; no two elements may have the same target. `element_bytes` is 1, 2, 4 or 8.
  // At most kMaxAxes axes may have an extent other than 1.
  StridedCopy(std::span<const int64_t> dims, std::span<const int64_t> source_strides,
              std::span<const int64_t> target_strides, int64_t element_bytes);

  // Copies the box. Both pointers point to its first element. Threaded.
  void Run(const void* source, void* target) const;

  // The description of the copy for loops elsewhere, on a device.
  struct Axis {
    int64_t dim = 1;
    int64_t source_stride = 0;
    int64_t target_stride = 0;
  };
  enum class Loop {
    kNothing,     // an empty box
    kRows,        // the last axis is contiguous on both sides
    kTransposed,  // the last axis is contiguous in the target, the axis before in the source
    kElements,    // anything else
  };
  Loop loop() const { return loop_; }
  // None of size 1, merged where contiguous, large strides in the target first.
  std::span<const Axis> axes() const {
    return std::span(axes_).first(static_cast<size_t>(axis_count_));
  }
  int64_t element_count() const { return element_count_; }
  int64_t element_bytes() const { return element_bytes_; }

 private:
  void MergeAxes();
  void ChooseLoop();
  // Returns the offsets of position `index` along the axes before the inner ones.
  void OuterOffsets(int64_t index, int inner_axes, int64_t* source, int64_t* target) const;
  void RunRows(const char* source, char* target) const;
  template <typename Word>
  void RunTransposed(const Word* source, Word* target) const;
  template <typename Word>
  void RunElements(const Word* source, Word* target) const;
  template <typename Word>
  void RunWords(const void* source, void* target) const;

  std::array<Axis, kMaxAxes> axes_;
  int axis_count_ = 0;
  int64_t element_count_ = 0;
  int64_t element_bytes_ = 1;
  Loop loop_ = Loop::kNothing;
};

}  // namespace skiff
