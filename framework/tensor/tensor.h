// A tensor: a typed, shaped view of a buffer, dense or some rows of a dense one (see layout.h).
//
// Copying a Tensor shares its buffer. Level-of-detail offsets (LoD) mark ragged sequences along
// dimension 0. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/base/error.h"
#include "framework/base/place.h"
#include "framework/tensor/layout.h"
#include "framework/tensor/shape.h"
#include "memory/allocator.h"

namespace skiff {

// Offsets per level, outermost first: each starts at 0 and does not descend; the last of level k is
// the number of sequences of level k + 1, the last of the lowest level is dim 0.
using LoD = std::vector<std::vector<uint64_t>>;

// Error unless lod is valid for a tensor with `rows` rows.
void CheckLoD(const LoD& lod, int64_t rows);

class Tensor {
 public:
  Tensor() = default;  // no buffer, rank 0
  // A new, uninitialised buffer. Error for a negative or overflowing shape.
  Tensor(const Shape& shape, DType dtype, Place place = Place::Cpu(), Layout layout = {});
  // A view of `buffer` from `offset_bytes` on. Error if it doesn't fit.
  Tensor(const Shape& shape, DType dtype, std::shared_ptr<Buffer> buffer, int64_t offset_bytes = 0,
         Layout layout = {});
  // A view of memory that the caller owns and keeps alive.
  static Tensor Borrow(void* data, const Shape& shape, DType dtype, Place place = Place::Cpu());
  // Makes a tensor of borrowed memory a view of other such memory; its buffer() is left behind.
  void Rebind(void* data) { data_ = data; }
  // A CPU tensor with a copy of `values`. Error unless their number is the shape's.
  template <typename T>
  static Tensor FromValues(const Shape& shape, const std::vector<T>& values);

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Layout layout() const { return layout_; }
  Place place() const { return buffer_ ? buffer_->place() : Place::Cpu(); }
  const LoD& lod() const { return lod_; }
  // Error unless valid for dim 0.
  void set_lod(LoD lod);

  bool has_data() const { return buffer_ != nullptr; }
  int64_t element_count() const { return shape_.element_count(); }
  // Bytes that the elements occupy, padding of a blocked layout and row numbers included.
  int64_t byte_count() const;

  // Whether this is some rows of a dense tensor of `height` rows: element_count() and values() are
  // those of the rows, which `rows` names, -1 being an unused slot. Error if it isn't.
  bool is_selected_rows() const { return layout_.selected_rows; }
  int64_t height() const;
  std::span<int64_t> rows() { return {RowNumbers(), held_rows()}; }
  std::span<const int64_t> rows() const { return {RowNumbers(), held_rows()}; }

  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  int64_t offset_bytes() const { return offset_bytes_; }

  void* raw_data() { return data_; }
  const void* raw_data() const { return data_; }
  // Error if the dtype isn't T's. Without a buffer (or elements): nullptr.
  template <typename T>
  T* data() {
    CheckDType(kDTypeOf<T>);
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* data() const {
    CheckDType(kDTypeOf<T>);
    return static_cast<const T*>(data_);
  }
  template <typename T>
  std::span<T> values() {
    return {data<T>(), held_elements()};
  }
  template <typename T>
  std::span<const T> values() const {
    return {data<T>(), held_elements()};
  }
  // The only element, as T. Error unless there is exactly one and the dtype is T's.
  template <typename T>
  T Item() const;
  template <typename T>
  std::vector<T> ToVector() const {
    return {values<T>().begin(), values<T>().end()};
  }

  // The same buffer under another shape of as many elements. Error otherwise, or if blocked.
  Tensor Reshaped(const Shape& shape) const;
  // Rows [begin, end) of dimension 0, same buffer. Error outside, for rank 0, or if blocked.
  Tensor Rows(int64_t begin, int64_t end) const;

 private:
  size_t held_rows() const { return has_data() ? static_cast<size_t>(shape_[0]) : 0; }
  int64_t* RowNumbers() const;
  // Without a buffer there are none, whatever the shape.
  size_t held_elements() const { return has_data() ? static_cast<size_t>(element_count()) : 0; }
  void CheckDType(DType expected) const {
    SKIFF_ENFORCE(dtype_ == expected, kInvalidArgument, "tensor of ", DTypeName(dtype_), " ",
                  shape_, " read as ", DTypeName(expected));
  }

  Shape shape_;
  DType dtype_ = DType::kFloat32;
  Layout layout_;
  std::shared_ptr<Buffer> buffer_;
  int64_t offset_bytes_ = 0;
  void* data_ = nullptr;
  LoD lod_;
};

// A CPU copy, of the same layout, with the LoD.
Tensor CopyToCpu(const Tensor& tensor);
// Copies bytes between tensors of equal shape, dtype and layout, whatever their places. Error if
// they differ.
void CopyTensor(const Tensor& from, Tensor* to);

template <typename T>
Tensor Tensor::FromValues(const Shape& shape, const std::vector<T>& values) {
  Tensor tensor(shape, kDTypeOf<T>);
  SKIFF_ENFORCE(static_cast<int64_t>(values.size()) == tensor.element_count(), kInvalidArgument,
                values.size(), " values given for shape ", shape);
  // Not memcpy: vector<bool> has no array.
  T* out = tensor.data<T>();
  for (size_t i = 0; i < values.size(); ++i) out[i] = values[i];
  return tensor;
}

template <typename T>
T Tensor::Item() const {
  SKIFF_ENFORCE(has_data() && element_count() == 1, kInvalidArgument,
                "Item() of a tensor of shape ", shape_, ": expected one element");
  SKIFF_ENFORCE(place().is_cpu(), kInvalidArgument, "Item() of a tensor on ", PlaceName(place()),
                ": copy it to the CPU first");
  return *data<T>();
}

}  // namespace skiff
