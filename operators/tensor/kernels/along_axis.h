// The elements that an index names along an axis of a tensor, for take_along_axis and
// put_along_axis.
//
// The index has the rank of the tensor, and its dims other than the axis are no larger. It names
// the element at its own coordinates, but along the axis at the number that it holds.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "framework/op/op_context.h"
#include "framework/tensor/shape.h"
#include "operators/common/axis_extents.h"
#include "operators/tensor/kernels/index_rows.h"

namespace skiff {

// Returns the attribute Axis as an index of the dims of `slot`; 0 for a scalar. Throws Error if it
// is negative or too large.
int AxisOfIndex(const OpContext& context, std::string_view slot);
// Throws Error unless Index is int32 or int64 and fits the tensor in `slot`.
void CheckIndexAlongAxis(const OpContext& context, std::string_view slot);

class AlongAxis {
 public:
  // The shapes must be known and fit.
  AlongAxis(const Shape& tensor, const Shape& index, int axis);

  // The tensor as a row of elements, which places number.
  AxisExtents elements() const { return {.outer = 1, .length = tensor_count_, .inner = 1}; }
  int64_t tensor_count() const { return tensor_count_; }
  // Index as [outer, length, inner].
  const AxisExtents& index() const { return index_; }
  // The number of indices.
  int64_t count() const { return index_.outer * index_.length * index_.inner; }
  // The extent of the axis, below which all indices must be.
  int64_t length() const { return length_; }
  // The distance of neighbours along the axis of the tensor.
  int64_t axis_stride() const { return axis_stride_; }
  // The dims of Index, at least one, and the distance in the tensor of a step along each of these
  // dims, 0 along the axis.
  const Shape& dims() const { return dims_; }
  int64_t stride(int dim) const { return strides_[static_cast<size_t>(dim)]; }

  // Sets places[i] to the number of the element that index i names. Throws Error (kOutOfRange),
  // which names op and slot, for an index outside the axis.
  void Resolve(const Tensor& indices, std::string_view op, int64_t* places,
               std::string_view slot = "Index") const;

 private:
  int64_t tensor_count_;
  AxisExtents index_;
  int64_t length_ = 1;
  int64_t axis_stride_ = 1;
  Shape dims_;
  std::array<int64_t, Shape::kMaxRank> strides_ = {};
};

// Calls body(i) for each position i of an index [outer, length, inner], on several threads. A
// single thread handles all positions for the same element, in the order of the positions or in the
// reverse order. `body` must not throw. T is the type of the elements.
template <typename T, typename Body>
void ForOwnedPlaces(const AxisExtents& index, const Body& body) {
  ForOwnedRuns<T>(index, index.length, [&](int64_t outer, int64_t j, int64_t first, int64_t size) {
    const int64_t begin = (outer * index.length + j) * index.inner + first;
    for (int64_t i = begin; i < begin + size; ++i) body(i);
  });
}
template <typename T, typename Body>
void ForOwnedPlacesFromTheBack(const AxisExtents& index, const Body& body) {
  ForOwnedRuns<T>(index, index.length, [&](int64_t outer, int64_t j, int64_t first, int64_t size) {
    const int64_t begin = ((outer + 1) * index.length - 1 - j) * index.inner + first;
    for (int64_t i = begin; i < begin + size; ++i) body(i);
  });
}

// Sets to[i] to the element from[places[i]], 0 unless i is the last position that names it. `marks`
// has room for a byte for each element.
template <typename T>
void TakeLastPlaces(const AlongAxis& named, const int64_t* places, const T* from, char* marks,
                    T* to) {
  const AxisExtents& index = named.index();
  ForOwnedParts<T>(index, index.length, [=](int64_t outer, int64_t first, int64_t size) {
    // Rows of one element each are a row.
    const int64_t rows = index.inner == 1 ? 1 : index.length;
    const int64_t row = index.inner == 1 ? index.length : size;
    const int64_t begin = outer * index.length * index.inner + first;
    for (int64_t j = 0; j < rows; ++j) {
      const int64_t at = begin + j * index.inner;
      for (int64_t i = at; i < at + row; ++i) to[i] = from[places[i]];
      for (int64_t i = at; i < at + row; ++i) marks[places[i]] = 0;
    }
    for (int64_t j = rows - 1; j >= 0; --j) {
      const int64_t at = begin + j * index.inner;
      for (int64_t i = at + row - 1; i >= at; --i) {
        char& mark = marks[places[i]];
        if (mark != 0) to[i] = T{};
        mark = 1;
      }
    }
  });
}

}  // namespace skiff
