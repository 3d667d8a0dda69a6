// A tensor: a typed and shaped view of a buffer. It is dense, or some rows of a dense tensor (see
// layout.h).
//
// Copying a Tensor copies the view and shares the buffer, which lives as long as any tensor on it.
// Level-of-detail offsets (LoD) mark ragged sequences along dimension 0. Not thread-safe.
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

// Offsets per level, outermost first. Each level starts at 0 and never descends. It ends with the
// number of sequences of the next level; the lowest level ends with dim 0.
using LoD = std::vector<std::vector<uint64_t>>;

// Returns a level's offsets for sequences of these lengths. Throws Error (kInvalidArgument) for a
// negative length.
std::vector<uint64_t> OffsetsOf(std::span<const int64_t> lengths);

// Throws Error unless `lod` is valid for a tensor with `rows` rows.
void CheckLoD(const LoD& lod, int64_t rows);

class TensorArray;

class Tensor {
 public:
  Tensor() = default;  // no buffer, rank 0
  // Allocates an uninitialised buffer. Throws Error if a dim is negative or the size overflows.
  Tensor(const Shape& shape, DType dtype, Place place = Place::Cpu(), Layout layout = {});
  // A view of `buffer` that begins at `offset_bytes`. Throws Error if the tensor doesn't fit.
  Tensor(const Shape& shape, DType dtype, std::shared_ptr<Buffer> buffer, int64_t offset_bytes = 0,
         Layout layout = {});
  // Returns a view of memory that the caller owns and keeps alive.
  static Tensor Borrow(void* data, const Shape& shape, DType dtype, Place place = Place::Cpu());
  // Moves a view of borrowed memory to `data`, which must hold as many bytes. buffer() keeps the
  // old address.
  void Rebind(void* data) { data_ = data; }
  // Returns a CPU tensor with a copy of `values`. Throws Error unless there are as many as `shape`
  // has elements.
  template <typename T>
  static Tensor FromValues(const Shape& shape, const std::vector<T>& values);

  // Returns a tensor without data that stands for an array: a variable of the kind
  // VarKind::kLoDTensorArray.
  static Tensor OfArray(std::shared_ptr<TensorArray> array);
  // Returns the array, nullptr for any other tensor.
  TensorArray* array() const { return array_.get(); }

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Layout layout() const { return layout_; }
  Place place() const { return buffer_ ? buffer_->place() : Place::Cpu(); }
  // Returns no levels for a tensor that isn't ragged.
  const LoD& lod() const;
  // Throws Error unless `lod` is valid for dim 0.
  void set_lod(LoD lod);
  // Copies of a tensor share its LoD, which nobody changes. nullptr: no levels.
  const std::shared_ptr<const LoD>& shared_lod() const { return lod_; }
  // Sets the LoD without a copy of it. The caller has made sure that it is valid for dim 0.
  void ShareLoD(std::shared_ptr<const LoD> lod) { lod_ = std::move(lod); }

  // Changes dim 0, which must exist. The caller has made sure that the buffer holds as many rows
  // and that the LoD fits them.
  void SetRows(int64_t rows) { shape_[0] = rows; }

  bool has_data() const { return buffer_ != nullptr; }
  int64_t element_count() const { return shape_.element_count(); }
  // Returns the bytes that the tensor occupies, including the padding of a blocked layout and the
  // row numbers of selected rows.
  int64_t byte_count() const;

  // For selected rows, shape(), element_count() and values() describe the rows held; `rows` are
  // their row numbers, -1 for an unused row, in a dense tensor of `height` rows. height() and
  // rows() throw Error for any other tensor.
  bool is_selected_rows() const { return layout_.selected_rows; }
  int64_t height() const;
  std::span<int64_t> rows() { return {RowNumbers(), held_rows()}; }
  std::span<const int64_t> rows() const { return {RowNumbers(), held_rows()}; }

  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  int64_t offset_bytes() const { return offset_bytes_; }

  void* raw_data() { return data_; }
  const void* raw_data() const { return data_; }
  // Throws Error unless T is the C++ type of the dtype. Returns nullptr for a tensor without a
  // buffer or elements.
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
  // Returns the only element. Throws Error unless there is exactly one, it is on the CPU, and T is
  // the C++ type of the dtype.
  template <typename T>
  T Item() const;
  template <typename T>
  std::vector<T> ToVector() const {
    return {values<T>().begin(), values<T>().end()};
  }

  // Returns a view with another shape of as many elements, without LoD. Throws Error if the counts
  // differ or the layout isn't plain.
  Tensor Reshaped(const Shape& shape) const;
  // Returns a view of rows [begin, end) of dimension 0, without LoD. Throws Error if the range is
  // out of bounds, the rank is 0, or the layout isn't plain.
  Tensor Rows(int64_t begin, int64_t end) const;

 private:
  size_t held_rows() const { return has_data() ? static_cast<size_t>(shape_[0]) : 0; }
  int64_t* RowNumbers() const;
  // A tensor without a buffer holds no elements, whatever its shape.
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
  std::shared_ptr<const LoD> lod_;
  std::shared_ptr<TensorArray> array_;
};

// Returns a CPU copy with the same layout and LoD.
Tensor CopyToCpu(const Tensor& tensor);
// Copies the bytes of `from` to `to`, on any places. Throws Error unless shape, dtype and layout
// are equal.
void CopyTensor(const Tensor& from, Tensor* to);

template <typename T>
Tensor Tensor::FromValues(const Shape& shape, const std::vector<T>& values) {
  Tensor tensor(shape, kDTypeOf<T>);
  SKIFF_ENFORCE(static_cast<int64_t>(values.size()) == tensor.element_count(), kInvalidArgument,
                values.size(), " values given for shape ", shape);
  // A loop, since vector<bool> has no array to memcpy from.
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
