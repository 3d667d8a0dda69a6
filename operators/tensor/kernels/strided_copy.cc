#include "operators/tensor/kernels/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "framework/base/parallel.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/stream_copy.h"
#include "operators/tensor/kernels/transpose_tile.h"

namespace skiff {
namespace {

// The number of bytes that is worth a thread of its own.
constexpr int64_t kGrainBytes = int64_t{64} << 10;

}  // namespace

std::array<int64_t, Shape::kMaxRank> RowMajorStrides(const Shape& shape) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

StridedCopy::StridedCopy(std::span<const int64_t> dims, std::span<const int64_t> source_strides,
                         std::span<const int64_t> target_strides, int64_t element_bytes)
    : element_count_(1), element_bytes_(element_bytes) {
  for (const int64_t dim : dims) element_count_ *= dim;
  if (element_count_ == 0) return;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1) axes_[axis_count_++] = {dims[i], source_strides[i], target_strides[i]};
  }
  // The target is written in the order of its memory: writes to scattered lines are dearer than
  // reads. The sort is stable without std::stable_sort, which would allocate.
  for (Axis* axis = axes_.data(); axis != axes_.data() + axis_count_; ++axis) {
    Axis* place = std::upper_bound(axes_.data(), axis, *axis, [](const Axis& a, const Axis& b) {
      return a.target_stride > b.target_stride;
    });
    std::rotate(place, axis, axis + 1);
  }
  MergeAxes();
  ChooseLoop();
}

// Merges neighbouring axes that are contiguous with respect to each other on both sides.
void StridedCopy::MergeAxes() {
  int kept = 0;
  for (int i = 1; i < axis_count_; ++i) {
    Axis& outer = axes_[kept];
    const Axis& inner = axes_[i];
    const bool mergeable = outer.source_stride == inner.source_stride * inner.dim &&
                           outer.target_stride == inner.target_stride * inner.dim;
    if (mergeable) {
      outer = {outer.dim * inner.dim, inner.source_stride, inner.target_stride};
    } else {
      axes_[++kept] = inner;
    }
  }
  if (axis_count_ > 0) axis_count_ = kept + 1;
}

void StridedCopy::ChooseLoop() {
  // A single element is a row of one.
  if (axis_count_ == 0) axes_[axis_count_++] = {1, 1, 1};
  const Axis& last = axes_[axis_count_ - 1];
  loop_ = Loop::kElements;
  if (last.source_stride == 1 && last.target_stride == 1) {
    loop_ = Loop::kRows;
    return;
  }
  // A transposition: the target's contiguous axis is the last one, and the source's is made the one
  // before it, so that RunTransposed finds both at fixed places.
  if (last.target_stride != 1) return;
  for (int i = 0; i + 1 < axis_count_; ++i) {
    if (axes_[i].source_stride != 1) continue;
    std::rotate(axes_.begin() + i, axes_.begin() + i + 1, axes_.begin() + axis_count_ - 1);
    loop_ = Loop::kTransposed;
    return;
  }
}

void StridedCopy::OuterOffsets(int64_t index, int inner_axes, int64_t* source,
                               int64_t* target) const {
  *source = 0;
  *target = 0;
  for (int i = axis_count_ - inner_axes - 1; i >= 0; --i) {
    const int64_t position = index % axes_[i].dim;
    index /= axes_[i].dim;
    *source += position * axes_[i].source_stride;
    *target += position * axes_[i].target_stride;
  }
}

void StridedCopy::RunRows(const char* source, char* target) const {
  const int64_t row = axes_[axis_count_ - 1].dim;
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / element_bytes_);
  // Parts may begin and end within a row, so that threads share a few long rows, too.
  const Axis& line = axes_[axis_count_ - 2];
  const bool streams = element_count_ * element_bytes_ >= kLeastStreamedBytes;
  ParallelFor(element_count_, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      // The rows of a line are equidistant, so the divisions of OuterOffsets happen once per line.
      int64_t source_offset = 0;
      int64_t target_offset = 0;
      const int64_t first = begin / row % line.dim;
      int64_t column = begin % row;
      OuterOffsets(begin / (row * line.dim), 2, &source_offset, &target_offset);
      for (int64_t i = first; i < line.dim && begin < end; ++i) {
        const int64_t count = std::min(row - column, end - begin);
        CopyRow(source + (source_offset + i * line.source_stride + column) * element_bytes_,
                target + (target_offset + i * line.target_stride + column) * element_bytes_,
                count * element_bytes_, streams);
        begin += count;
        column = 0;
      }
    }
    if (streams) EndStreams();
  });
}

template <typename Word>
void StridedCopy::RunTransposed(const Word* source, Word* target) const {
  // The last axis runs along the target, the one before it along the source.
  const Axis& along_source = axes_[axis_count_ - 2];
  const Axis& along_target = axes_[axis_count_ - 1];
  // A unit is a block of rows that are read side by side.
  constexpr int64_t kUnitRows = 128;
  constexpr int64_t kUnitColumns = 512;
  // If words are copied one by one, a tile is small enough that the lines it reads stay in the
  // first-level cache until all their words are used.
  constexpr int64_t kTileRows = sizeof(Word) == sizeof(uint32_t) ? kUnitRows : 32;
  const int64_t strips = (along_target.dim + kUnitRows - 1) / kUnitRows;
  const int64_t parts = (along_source.dim + kUnitColumns - 1) / kUnitColumns;
  const int64_t units = element_count_ / (along_source.dim * along_target.dim) * strips * parts;
  const int64_t unit_bytes = std::min(kUnitRows, along_target.dim) *
                             std::min(kUnitColumns, along_source.dim) * element_bytes_;
  const bool streams = element_count_ * element_bytes_ >= kLeastStreamedBytes;
  const auto transpose_unit = [&](int64_t unit) {
    int64_t source_offset = 0;
    int64_t target_offset = 0;
    OuterOffsets(unit / (strips * parts), 2, &source_offset, &target_offset);
    const int64_t first = unit % parts * kUnitColumns;
    const int64_t width = std::min(kUnitColumns, along_source.dim - first);
    const int64_t begin = unit / parts % strips * kUnitRows;
    const int64_t end = std::min(begin + kUnitRows, along_target.dim);
    for (int64_t row = begin; row < end; row += kTileRows) {
      TransposeTile(source + source_offset + first + row * along_target.source_stride,
                    along_target.source_stride,
                    target + target_offset + first * along_source.target_stride + row,
                    along_source.target_stride, std::min(kTileRows, end - row), width, streams);
    }
  };
  ParallelFor(units, std::max<int64_t>(1, kGrainBytes / unit_bytes),
              [&](int64_t begin, int64_t end) {
                for (int64_t unit = begin; unit < end; ++unit) transpose_unit(unit);
                if (streams) EndStreams();
              });
}

template <typename Word>
void StridedCopy::RunElements(const Word* source, Word* target) const {
  const Axis& last = axes_[axis_count_ - 1];
  ParallelFor(element_count_, kGrainBytes / element_bytes_, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t column = begin % last.dim;
      const int64_t count = std::min(last.dim - column, end - begin);
      int64_t source_offset = 0;
      int64_t target_offset = 0;
      OuterOffsets(begin / last.dim, 1, &source_offset, &target_offset);
      begin += count;
      // A broadcast along the last axis.
      if (last.source_stride == 0 && last.target_stride == 1) {
        std::fill_n(target + target_offset + column, count, source[source_offset]);
        continue;
      }
      for (int64_t i = column; i < column + count; ++i) {
        target[target_offset + i * last.target_stride] =
            source[source_offset + i * last.source_stride];
      }
    }
  });
}

template <typename Word>
void StridedCopy::RunWords(const void* source, void* target) const {
  const Word* from = static_cast<const Word*>(source);
  Word* to = static_cast<Word*>(target);
  loop_ == Loop::kTransposed ? RunTransposed(from, to) : RunElements(from, to);
}

void StridedCopy::Run(const void* source, void* target) const {
  if (loop_ == Loop::kNothing) return;
  if (loop_ == Loop::kRows) {
    if (axis_count_ == 1) return CopyBytes(source, target, element_count_ * element_bytes_);
    return RunRows(static_cast<const char*>(source), static_cast<char*>(target));
  }
  switch (element_bytes_) {
    case 1:
      return RunWords<uint8_t>(source, target);
    case 2:
      return RunWords<uint16_t>(source, target);
    case 4:
      return RunWords<uint32_t>(source, target);
    default:
      return RunWords<uint64_t>(source, target);
  }
}

}  // namespace skiff
