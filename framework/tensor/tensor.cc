#include "framework/tensor/tensor.h"

#include <cstring>

#include "framework/base/element_count.h"
#include "memory/places.h"

namespace skiff {

std::vector<uint64_t> OffsetsOf(std::span<const int64_t> lengths) {
  std::vector<uint64_t> offsets = {0};
  for (const int64_t length : lengths) {
    SKIFF_ENFORCE(length >= 0, kInvalidArgument, "a sequence of length ", length,
                  ": expected at least 0");
    offsets.push_back(offsets.back() + static_cast<uint64_t>(length));
  }
  return offsets;
}

void CheckLoD(const LoD& lod, int64_t rows) {
  for (size_t level = 0; level < lod.size(); ++level) {
    const std::vector<uint64_t>& offsets = lod[level];
    SKIFF_ENFORCE(offsets.size() >= 2 && offsets.front() == 0, kInvalidArgument, "LoD level ",
                  level, ": expected at least 2 offsets, the first 0; found [", Join(offsets, ", "),
                  "]");
    for (size_t i = 1; i < offsets.size(); ++i) {
      SKIFF_ENFORCE(offsets[i - 1] <= offsets[i], kInvalidArgument, "LoD level ", level,
                    ": offset ", i, " is ", offsets[i], " after ", offsets[i - 1],
                    ": expected no less");
    }
    // The offsets of a level count sequences of the next one; those of the lowest count rows.
    const bool lowest = level + 1 == lod.size();
    const uint64_t expected =
        lowest ? static_cast<uint64_t>(rows) : static_cast<uint64_t>(lod[level + 1].size()) - 1;
    SKIFF_ENFORCE(offsets.back() == expected, kInvalidArgument, "LoD level ", level, " ends at ",
                  offsets.back(), ": expected ", expected, lowest ? " (rows)" : " (sequences)");
  }
}

Tensor::Tensor(const Shape& shape, DType dtype, Place place, Layout layout)
    : shape_(shape), dtype_(dtype), layout_(layout) {
  // byte_count checks for overflow and for unknown dims.
  buffer_ = std::make_shared<Buffer>(AllocatorOf(place), byte_count());
  data_ = buffer_->data();
}

Tensor::Tensor(const Shape& shape, DType dtype, std::shared_ptr<Buffer> buffer,
               int64_t offset_bytes, Layout layout)
    : shape_(shape),
      dtype_(dtype),
      layout_(layout),
      buffer_(std::move(buffer)),
      offset_bytes_(offset_bytes) {
  // A difference on the right, since a sum on the left could overflow.
  SKIFF_ENFORCE(offset_bytes >= 0 && byte_count() <= buffer_->bytes() - offset_bytes,
                kInvalidArgument, "view of ", byte_count(), " bytes from ", offset_bytes,
                " on doesn't fit a buffer of ", buffer_->bytes(), " bytes");
  data_ = static_cast<char*>(buffer_->data()) + offset_bytes;
}

Tensor Tensor::Borrow(void* data, const Shape& shape, DType dtype, Place place) {
  const int64_t bytes = ByteCount(shape.element_count(), dtype);
  // A Buffer that doesn't own its bytes, so that borrowed tensors need no case of their own.
  return Tensor(shape, dtype, std::make_shared<Buffer>(data, bytes, place));
}

Tensor Tensor::OfArray(std::shared_ptr<TensorArray> array) {
  Tensor tensor;
  tensor.array_ = std::move(array);
  return tensor;
}

Place Tensor::place() const { return buffer_ ? buffer_->place() : Place::Cpu(); }

void Tensor::ThrowDType(DType expected, CallSite site) const {
  Throw(ErrorCode::kInvalidArgument, site.file, ":", site.line, ": tensor of ", dtype_, " ", shape_,
        " read as ", expected);
}

void Tensor::CheckIsItem(CallSite site) const {
  SKIFF_ENFORCE(has_data() && element_count() == 1, kInvalidArgument, site.file, ":", site.line,
                ": Item() of a tensor of shape ", shape_, ": expected one element");
  SKIFF_ENFORCE(place().is_cpu(), kInvalidArgument, site.file, ":", site.line,
                ": Item() of a tensor on ", place(), ": copy it to the CPU first");
}

void Tensor::CheckValueCount(size_t count, CallSite site) const {
  SKIFF_ENFORCE(static_cast<int64_t>(count) == element_count(), kInvalidArgument, site.file, ":",
                site.line, ": ", count, " values given for shape ", shape_);
}

const LoD& Tensor::lod() const {
  static const LoD none;
  return lod_ == nullptr ? none : *lod_;
}

void Tensor::set_lod(LoD lod) {
  CheckLoD(lod, shape_.rank() == 0 ? 1 : shape_[0]);
  lod_ = lod.empty() ? nullptr : std::make_shared<const LoD>(std::move(lod));
}

int64_t Tensor::byte_count() const { return StorageBytes(shape_, dtype_, layout_); }

int64_t Tensor::height() const {
  SKIFF_ENFORCE(is_selected_rows(), kFailedPrecondition, "height of a dense tensor of shape ",
                shape_, ": expected selected rows");
  return layout_.height;
}

int64_t* Tensor::RowNumbers() const {
  SKIFF_ENFORCE(is_selected_rows(), kFailedPrecondition, "row numbers of a dense tensor of shape ",
                shape_, ": expected selected rows");
  if (data_ == nullptr) return nullptr;
  return reinterpret_cast<int64_t*>(static_cast<char*>(data_) + RowNumbersOffset(shape_, dtype_));
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  SKIFF_ENFORCE(layout_.is_plain(), kFailedPrecondition, "reshape of a tensor of layout ", layout_);
  SKIFF_ENFORCE(shape.element_count() == element_count(), kInvalidArgument, "reshape of ", shape_,
                " to ", shape, ": element counts differ");
  Tensor view = *this;
  view.shape_ = shape;
  view.lod_ = nullptr;
  return view;
}

Tensor Tensor::Rows(int64_t begin, int64_t end) const {
  SKIFF_ENFORCE(layout_.is_plain() && shape_.rank() > 0, kFailedPrecondition,
                "rows of a tensor of ", shape_, " and layout ", layout_);
  SKIFF_ENFORCE(0 <= begin && begin <= end && end <= shape_[0], kOutOfRange, "rows [", begin, ", ",
                end, ") of a tensor of shape ", shape_);
  Tensor view = *this;
  view.lod_ = nullptr;
  view.shape_[0] = end - begin;
  const int64_t row_bytes = ByteCount(shape_.element_count(1, shape_.rank()), dtype_);
  view.offset_bytes_ += begin * row_bytes;
  if (view.data_ != nullptr) view.data_ = static_cast<char*>(view.data_) + begin * row_bytes;
  return view;
}

void CopyTensor(const Tensor& from, Tensor* to) {
  SKIFF_ENFORCE(
      from.shape() == to->shape() && from.dtype() == to->dtype() && from.layout() == to->layout(),
      kInvalidArgument, "copy of ", from.dtype(), " ", from.shape(), " ", from.layout(), " into ",
      to->dtype(), " ", to->shape(), " ", to->layout());
  // Blocked padding and row numbers are copied with the rest: equal layouts mean equal storage.
  const size_t bytes = static_cast<size_t>(from.byte_count());
  if (bytes == 0) return;
  SKIFF_ENFORCE(from.has_data() && to->has_data(), kFailedPrecondition, "copy of ", from.dtype(),
                " ", from.shape(), ": the ", from.has_data() ? "target" : "source", " has no data");
  if (from.place().is_cpu() && to->place().is_cpu()) {
    // memmove, since both may be views of one buffer that overlap.
    std::memmove(to->raw_data(), from.raw_data(), bytes);
    return;
  }
  CopyBytes(to->raw_data(), to->place(), from.raw_data(), from.place(), bytes);
}

Tensor CopyToCpu(const Tensor& tensor) {
  Tensor copy(tensor.shape(), tensor.dtype(), Place::Cpu(), tensor.layout());
  CopyTensor(tensor, &copy);
  copy.ShareLoD(tensor.shared_lod());
  return copy;
}

}  // namespace skiff
