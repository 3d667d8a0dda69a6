// A list of tensors that grows, such as the results of the iterations of a loop.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/tensor/tensor.h"

namespace skiff {

namespace internal {

// The elements may differ in rows and LoD. The array owns the memory of its elements and keeps it
// when elements are removed. So an array that is filled again and again takes memory only for
// elements that are larger than before. On a device, which may still use the memory that an element
// has outgrown, that is kept as well, until ReleaseOutgrown. Not thread-safe.
class TensorArray {
 public:
  explicit TensorArray(Place place = Place::Cpu()) : place_(place) {}

  // Returns the largest index that has an element, plus 1.
  int64_t size() const;
  // Returns nullptr if there is no such element. The address is valid as long as the array.
  const Tensor* Find(int64_t index) const;
  // Throws an Error (kOutOfRange), which names the index and the size, if there is no such element.
  const Tensor& At(int64_t index) const;
  Tensor& At(int64_t index);

  // Replaces element `index` by one with undefined data and a copy of `lod`. Throws an Error
  // (kInvalidArgument) for a negative index and for one of 2^24 and more, and an Error
  // (kResourceExhausted) if there is no memory.
  Tensor& Make(int64_t index, const Shape& shape, DType dtype, const LoD& lod = {});
  // Replaces element `index` by a copy of a dense tensor. Throws what Make throws.
  void Write(int64_t index, const Tensor& value);
  // Removes an element, if it is there.
  void Remove(int64_t index);
  void Clear();

  // Returns the array of a slot, which is made if it isn't there. It is no element; removing
  // elements leaves the nested array as it is.
  const std::shared_ptr<TensorArray>& Nested(int64_t slot);

  // Return whether elements, here or in nested arrays, have outgrown memory of a device, and give
  // it back: the caller has waited for the device.
  bool HasOutgrown() const;
  void ReleaseOutgrown();

  // Returns the bytes of memory that the elements, here and in nested arrays, own.
  int64_t bytes() const;

 private:
  struct Element {
    bool is_present = false;
    Tensor tensor;
    std::shared_ptr<LoD> lod;
  };

  Place place_;
  std::vector<std::unique_ptr<Element>> elements_;  // nullptr: never made
  std::vector<std::shared_ptr<TensorArray>> nested_;
  std::vector<std::shared_ptr<Buffer>> outgrown_;
};

}  // namespace internal
using internal::TensorArray;

}  // namespace skiff
