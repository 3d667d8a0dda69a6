// The one copy loop of the ops that move elements without looking at them: transpose, slice,
// concat, split, reshape, tile, flip.
//
// A StridedCopy moves a box of elements between two strided layouts. Making one sorts and merges
// the axes and picks the inner loop; Run then allocates nothing and may be called from one thread
// at a time with any pair of buffers that don't overlap.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "framework/tensor/shape.h"

namespace skiff {

// Row-major strides of `shape`, in elements.
std::array<int64_t, Shape::kMaxRank> RowMajorStrides(const Shape& shape);

class StridedCopy {
 public:
  // Room for each axis of a tensor cut in two, as in tile.
  static constexpr int kMaxAxes = 2 * Shape::kMaxRank;

  StridedCopy() = default;  // copies nothing
  // `dims[i]` elements along axis i, `source_strides[i]` and `target_strides[i]` elements apart.
  // Strides may be negative, and 0 in the source: that axis is repeated. Two elements
  // never share a target. `element_bytes` is 1, 2, 4 or 8; at most kMaxAxes axes have an extent
  // other than 1.
  StridedCopy(std::span<const int64_t> dims, std::span<const int64_t> source_strides,
              std::span<const int64_t> target_strides, int64_t element_bytes);

  // Copies to `target` on; both point at the box's first element. Threaded.
  void Run(const void* source, void* target) const;

 private:
  struct Axis {
    int64_t dim = 1;
    int64_t source_stride = 0;
    int64_t target_stride = 0;
  };
  enum class Loop {
    kNothing,     // an empty box
    kRows,        // the last axis is contiguous on both sides
    kTransposed,  // the last two axes are contiguous on one side each
    kElements,    // anything else
  };

  void MergeAxes();
  void ChooseLoop();
  // Offsets of position `index` of the axes before the inner ones.
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

// memcpy of a contiguous range, threaded; source == target is fine and copies nothing.
void CopyBytes(const void* source, void* target, int64_t bytes);
// memset to zero, threaded.
void ZeroBytes(void* target, int64_t bytes);

}  // namespace skiff
