// Boxes: the places of objects in an image, as rows (xmin, ymin, xmax, ymax).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "framework/base/parallel.h"
#include "framework/op/op_context.h"

namespace skiff {

// The numbers of a box.
inline constexpr int64_t kBoxSize = 4;

template <typename T>
struct Box {
  T xmin;
  T ymin;
  T xmax;
  T ymax;

  constexpr T width() const { return xmax - xmin; }
  constexpr T height() const { return ymax - ymin; }
};

template <typename T>
constexpr Box<T> BoxAt(const T* boxes, int64_t i) {
  const T* box = boxes + i * kBoxSize;
  return {box[0], box[1], box[2], box[3]};
}
template <typename T>
constexpr void SetBox(const Box<T>& box, T* boxes, int64_t i) {
  T* to = boxes + i * kBoxSize;
  to[0] = box.xmin;
  to[1] = box.ymin;
  to[2] = box.xmax;
  to[3] = box.ymax;
}

// Of pixels, not of normalized coordinates: a box from 3 to 5 has 3 pixels.
template <typename T>
constexpr T PixelOffset(bool normalized) {
  return normalized ? T(0) : T(1);
}

// Throws Error, naming the op and the slot, unless an input has `rank` dims, the last one of 4
// numbers, and the dtype of slot `like`.
inline void CheckBoxes(const OpContext& context, std::string_view slot, int rank,
                       std::string_view like) {
  const TensorMeta& boxes = context.Input(slot);
  const int64_t size = boxes.shape.rank() == rank ? boxes.shape[rank - 1] : 0;
  SKIFF_ENFORCE(size == kBoxSize || size == -1, kInvalidArgument, context.op().type, ": ", slot,
                " of shape ", boxes.shape, ", expected ", rank, " dims, the last of ", kBoxSize);
  const DType dtype = context.Input(like).dtype;
  SKIFF_ENFORCE(boxes.dtype == dtype, kInvalidArgument, context.op().type, ": ", slot, " is ",
                boxes.dtype, " and ", like, " is ", dtype, ", expected one dtype");
}

// Calls body(i) for all i < count, each of which takes about `work` simple operations.
template <class Body>
void ForEachOnCpu(int64_t count, int64_t work, const Body& body) {
  constexpr int64_t kWorkOfThread = 16384;
  ParallelFor(count, std::max<int64_t>(1, kWorkOfThread / std::max<int64_t>(1, work)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) body(i);
              });
}

}  // namespace skiff
