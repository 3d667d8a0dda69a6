// Reading, overwriting and adding rows by index, for gather, index_select, scatter, gather_nd and
// scatter_nd_add.
//
// The tensor is [outer, length, inner]. Indices count along the middle axis; a row is `inner`
// elements. Indices are int32 or int64 and never negative. The loops don't check them: they read
// indices that ReadIndices or RowsByTuple::Resolve has checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/integer.h"
#include "operators/tensor/kernels/stream_copy.h"

namespace skiff {

// Throws Error unless the slot has int32 or int64.
void CheckIndexDType(const OpContext& context, std::string_view slot);
// Returns the number of indices in a tensor of shape [], [m] or [m, 1]: 1 or m, or -1 if unknown.
// Throws Error for other shapes.
int64_t CountOfIndexVector(const OpContext& context, std::string_view slot);

// Calls visitor(const int32_t*) or visitor(const int64_t*) with the data.
template <typename Visitor>
void VisitIndices(const Tensor& indices, const Visitor& visitor) {
  if (indices.dtype() == DType::kInt32) return visitor(indices.data<int32_t>());
  visitor(indices.data<int64_t>());
}

// Throws Error (kOutOfRange) that names op and slot for the first index outside [0, extent).
template <typename Index>
void CheckIndices(const Index* indices, int64_t count, int64_t extent, std::string_view op,
                  std::string_view slot) {
  const auto is_bad = [extent](Index index) {
    return static_cast<uint64_t>(int64_t{index}) >= static_cast<uint64_t>(extent);
  };
  bool any_bad = false;
  for (int64_t i = 0; i < count; ++i) any_bad |= is_bad(indices[i]);
  if (!any_bad) return;
  const int64_t bad = std::find_if(indices, indices + count, is_bad) - indices;
  Throw(ErrorCode::kOutOfRange, op, ": ", slot, "[", bad, "] = ", indices[bad], " is outside [0, ",
        extent, ")");
}

// Requests the workspace that ReadIndices needs for the indices of a slot.
int RequestRoomForIndices(PrepareContext& context, std::string_view slot);
// Copies the indices to `checked` and checks the copy, as CheckIndices, so that each is read once:
// a feed is the caller's memory, and another thread may write to it during the run. Returns
// `checked`.
const int64_t* ReadIndices(const Tensor& indices, int64_t extent, std::string_view op,
                           std::string_view slot, void* checked);

// Sets out[o, i, 0] = x[o, indices[i], 0], for rows of one word. Threaded.
template <typename Word>
void TakeWords(const AxisExtents& axis, const Word* x, const int64_t* indices, int64_t count,
               Word* out) {
  ParallelFor(axis.outer * count, 8192, [=](int64_t begin, int64_t end) {
    int64_t i = begin % count;
    const Word* from = x + begin / count * axis.length;
    for (int64_t position = begin; position < end; ++position) {
      out[position] = from[indices[i]];
      if (++i == count) {
        i = 0;
        from += axis.length;
      }
    }
  });
}

// Sets out[o, i, :] = x[o, indices[i], :]. `out` is [outer, count, inner]. Threaded.
inline void TakeRows(const AxisExtents& axis, const void* x, const int64_t* indices, int64_t count,
                     int64_t element_bytes, void* out) {
  const int64_t row_bytes = axis.inner * element_bytes;
  const auto take_words = [&]<typename Word>() {
    TakeWords(axis, static_cast<const Word*>(x), indices, count, static_cast<Word*>(out));
  };
  switch (row_bytes) {
    case 1:
      return take_words.template operator()<uint8_t>();
    case 2:
      return take_words.template operator()<uint16_t>();
    case 4:
      return take_words.template operator()<uint32_t>();
    case 8:
      return take_words.template operator()<uint64_t>();
  }
  const char* source = static_cast<const char*>(x);
  char* target = static_cast<char*>(out);
  // Parts may begin and end within a row, so that threads share a few long rows, too.
  const bool streams = axis.outer * count * row_bytes >= kLeastStreamedBytes;
  ParallelFor(axis.outer * count * row_bytes, int64_t{64} << 10, [=](int64_t begin, int64_t end) {
    int64_t i = begin / row_bytes % count;
    const char* block = source + begin / row_bytes / count * axis.length * row_bytes;
    int64_t offset = begin % row_bytes;
    while (begin < end) {
      const int64_t bytes = std::min(row_bytes - offset, end - begin);
      CopyRow(block + indices[i] * row_bytes + offset, target + begin, bytes, streams);
      begin += bytes;
      offset = 0;
      if (++i == count) {
        i = 0;
        block += axis.length * row_bytes;
      }
    }
    if (streams) EndStreams();
  });
}

// Calls body(outer, first, length) on several threads: elements [first, first + length) of all rows
// of block `outer`, of which there are `count`, are the thread's. `body` must not throw.
template <typename T, typename Body>
void ForOwnedParts(const AxisExtents& axis, int64_t count, const Body& body) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  const int64_t grain = std::max(kLine, 8192 / std::max<int64_t>(1, count));
  ParallelFor(axis.outer * axis.inner, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t outer = begin / axis.inner;
      const int64_t first = begin % axis.inner;
      const int64_t length = std::min(axis.inner - first, end - begin);
      body(outer, first, length);
      begin += length;
    }
  });
}

// Calls body(outer, i, first, length) on each thread for each index i, in order: the thread's part
// of row i of block `outer` is elements [first, first + length). Each element belongs to one
// thread, so updates of a row happen in the order of i, however many threads there are. `body` must
// not throw.
template <typename T, typename Body>
void ForOwnedRuns(const AxisExtents& axis, int64_t count, const Body& body) {
  ForOwnedParts<T>(axis, count, [&](int64_t outer, int64_t first, int64_t length) {
    for (int64_t i = 0; i < count; ++i) body(outer, i, first, length);
  });
}

// Adds rows[o, i, :] to out[o, indices[i], :], in the order of i. `rows` is [outer, count, inner].
// Sums of integers wrap around. Threaded.
template <typename T>
void AddRows(const AxisExtents& axis, const T* rows, const int64_t* indices, int64_t count,
             T* out) {
  ForOwnedRuns<T>(axis, count, [=](int64_t outer, int64_t i, int64_t first, int64_t length) {
    const T* from = rows + (outer * count + i) * axis.inner + first;
    T* to = out + (outer * axis.length + indices[i]) * axis.inner + first;
    for (int64_t k = 0; k < length; ++k) to[k] = WrappingAdd(to[k], from[k]);
  });
}

// Turns index tuples [..., k] into the first k dims of a tensor into indices of its rows.
class RowsByTuple {
 public:
  RowsByTuple() = default;
  // Both shapes must be known; `index` has rank 1 or more. Throws Error for tuples of more indices
  // than x has dims.
  RowsByTuple(const Shape& x, const Shape& index, std::string_view op);

  // Returns the extents of the tensor as rows.
  const AxisExtents& axis() const { return axis_; }
  // Returns the number of tuples.
  int64_t count() const { return count_; }
  // Returns the shape of all rows that the tuples name: the dims of `index` without the last, then
  // the dims of x that the tuples don't index.
  const Shape& rows_shape() const { return rows_shape_; }
  // Sets rows[i] to the row that tuple i names. Throws Error (kOutOfRange) for an index outside its
  // dim.
  void Resolve(const Tensor& index, std::string_view op, int64_t* rows) const;

 private:
  Shape dims_;  // the dims of x that the tuples index
  AxisExtents axis_;
  int64_t count_ = 0;
  Shape rows_shape_;
};

// Returns what RowsByTuple::rows_shape would be. Dims may be -1, except the last one of `index`.
// Throws Error for shapes that don't fit.
Shape ShapeOfTupleRows(const Shape& x, const Shape& index, std::string_view op);

}  // namespace skiff
