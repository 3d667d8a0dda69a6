#include "framework/tensor/tensor_array.h"

#include <algorithm>
#include <cstring>

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {

int64_t TensorArray::size() const {
  const auto last = std::find_if(elements_.rbegin(), elements_.rend(), [](const auto& element) {
    return element != nullptr && element->is_present;
  });
  return elements_.rend() - last;
}

const Tensor* TensorArray::Find(int64_t index) const {
  if (index < 0 || index >= static_cast<int64_t>(elements_.size())) return nullptr;
  const auto& element = elements_[static_cast<size_t>(index)];
  return element != nullptr && element->is_present ? &element->tensor : nullptr;
}

const Tensor& TensorArray::At(int64_t index) const {
  const Tensor* found = Find(index);
  SKIFF_ENFORCE(found != nullptr, kOutOfRange, "the array has no element ", index, ", it has ",
                size());
  return *found;
}

Tensor& TensorArray::At(int64_t index) {
  return const_cast<Tensor&>(static_cast<const TensorArray&>(*this).At(index));
}

Tensor& TensorArray::Make(int64_t index, const Shape& shape, DType dtype, const LoD& lod) {
  constexpr int64_t kMostElements = int64_t{1} << 24;
  SKIFF_ENFORCE(index >= 0 && index < kMostElements, kInvalidArgument, "element ", index,
                " of an array, expected an index of at least 0 and less than ", kMostElements);
  const auto at = static_cast<size_t>(index);
  if (at >= elements_.size()) elements_.resize(at + 1);
  if (elements_[at] == nullptr) elements_[at] = std::make_unique<Element>();
  Element& element = *elements_[at];
  const int64_t bytes = ByteCount(shape.element_count(), dtype);
  const std::shared_ptr<Buffer>& held = element.tensor.buffer();
  // A copy that somebody has made of the element keeps its values.
  if (held != nullptr && held->bytes() >= bytes && held.use_count() == 1) {
    if (element.tensor.shape() != shape || element.tensor.dtype() != dtype) {
      element.tensor = Tensor(shape, dtype, std::shared_ptr<Buffer>(held));
    }
  } else {
    if (held != nullptr && !place_.is_cpu()) outgrown_.push_back(held);
    const MemoryTagScope tag(MemoryTag::kArena);
    element.tensor = Tensor(shape, dtype, place_);
  }
  element.is_present = true;
  element.tensor.ShareLoD(nullptr);
  if (lod.empty()) return element.tensor;
  if (element.lod == nullptr || element.lod.use_count() > 1) element.lod = std::make_shared<LoD>();
  *element.lod = lod;
  element.tensor.ShareLoD(element.lod);
  return element.tensor;
}

void TensorArray::Write(int64_t index, const Tensor& value) {
  Tensor& element = Make(index, value.shape(), value.dtype(), value.lod());
  if (value.element_count() > 0) CopyTensor(value, &element);
}

void TensorArray::Remove(int64_t index) {
  if (Find(index) != nullptr) elements_[static_cast<size_t>(index)]->is_present = false;
}

void TensorArray::Clear() {
  for (const auto& element : elements_) {
    if (element != nullptr) element->is_present = false;
  }
}

const std::shared_ptr<TensorArray>& TensorArray::Nested(int64_t slot) {
  const auto index = static_cast<size_t>(slot);
  if (index >= nested_.size()) nested_.resize(index + 1);
  if (nested_[index] == nullptr) nested_[index] = std::make_shared<TensorArray>(place_);
  return nested_[index];
}

bool TensorArray::HasOutgrown() const {
  return !outgrown_.empty() || std::ranges::any_of(nested_, [](const auto& array) {
    return array != nullptr && array->HasOutgrown();
  });
}

void TensorArray::ReleaseOutgrown() {
  outgrown_.clear();
  for (const auto& array : nested_) {
    if (array != nullptr) array->ReleaseOutgrown();
  }
}

int64_t TensorArray::bytes() const {
  int64_t bytes = 0;
  for (const auto& element : elements_) {
    const bool has_memory = element != nullptr && element->tensor.has_data();
    if (has_memory) bytes += element->tensor.buffer()->bytes();
  }
  for (const auto& array : nested_) bytes += array == nullptr ? 0 : array->bytes();
  return bytes;
}

}  // namespace skiff
