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

#include "framework/base/api/call_site.h"
#include "framework/base/api/dtype.h"
#include "framework/base/place.h"
#include "framework/tensor/api/layout.h"
#include "framework/tensor/api/shape.h"

namespace skiff {

// Offsets per level, outermost first. Each level starts at 0 and never descends. It ends with the
// number of sequences of the next level; the lowest level ends with dim 0.
using LoD = std::vector<std::vector<uint64_t>>;

namespace internal {
class Buffer;
class TensorArray;
}  // namespace internal

class Tensor {
 public:
  using Buffer = internal::Buffer;
  using CallSite = internal::CallSite;
  using Layout = internal::Layout;
  using TensorArray = internal::TensorArray;

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
  static Tensor FromValues(const Shape& shape, const std::vector<T>& values,
                           CallSite site = CallSite::Current());

  // Returns a tensor without data that stands for an array: a variable of the kind
  // VarKind::kLoDTensorArray.
  static Tensor OfArray(std::shared_ptr<TensorArray> array);
  // Returns the array, nullptr for any other tensor.
  TensorArray* array() const { return array_.get(); }

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Layout layout() const { return layout_; }
  Place place() const;
  // Returns no levels for a tensor that isn't ragged.
  const LoD& lod() const;
  // Throws Error unless `lod` is valid for dim 0.
  void set_lod(LoD lod);
  // Copies of a tensor share its LoD, which nobody changes. nullptr: no levels.
  const std::shared_ptr<const LoD>& shared_lod() const { return lod_; }
  // Sets the LoD without a copy of it. The caller has made sure that it is valid for dim 0.
  void ShareLoD(std::shared_ptr<const LoD> lod) { lod_ = std::move(lod); }

  // Changes dim 0, which must exist. The caller has made sure that the buffer has room for `rows`
  // and that the LoD fits.
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
  // The following throw an Error (kInvalidArgument), which says where they are called, unless T is
  // the C++ type of the dtype.

  // Return nullptr for a tensor without a buffer or elements.
  template <typename T>
  T* data(CallSite site = CallSite::Current()) {
    CheckDType(kDTypeOf<T>, site);
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* data(CallSite site = CallSite::Current()) const {
    CheckDType(kDTypeOf<T>, site);
    return static_cast<const T*>(data_);
  }
  template <typename T>
  std::span<T> values(CallSite site = CallSite::Current()) {
    return {data<T>(site), held_elements()};
  }
  template <typename T>
  std::span<const T> values(CallSite site = CallSite::Current()) const {
    return {data<T>(site), held_elements()};
  }
  // Returns the only element. Also throws an Error unless there is exactly one element, on the CPU.
  template <typename T>
  T Item(CallSite site = CallSite::Current()) const {
    CheckIsItem(site);
    return *data<T>(site);
  }
  template <typename T>
  std::vector<T> ToVector(CallSite site = CallSite::Current()) const {
    const std::span<const T> all = values<T>(site);
    return {all.begin(), all.end()};
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
  void CheckDType(DType expected, CallSite site) const {
    if (dtype_ != expected) [[unlikely]]
      ThrowDType(expected, site);
  }
  [[noreturn]] void ThrowDType(DType expected, CallSite site) const;
  void CheckIsItem(CallSite site) const;
  void CheckValueCount(size_t count, CallSite site) const;

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
template <typename T>
Tensor Tensor::FromValues(const Shape& shape, const std::vector<T>& values, CallSite site) {
  Tensor tensor(shape, kDTypeOf<T>);
  tensor.CheckValueCount(values.size(), site);
  // A loop, since vector<bool> has no array to memcpy from.
  T* out = tensor.data<T>();
  for (size_t i = 0; i < values.size(); ++i) out[i] = values[i];
  return tensor;
}

}  // namespace skiff
