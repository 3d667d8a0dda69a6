// The elements of several arrays, numbered through as if the arrays were one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "framework/op/kernel.h"
#include "operators/common/memory_mover.h"

namespace skiff {

// `Byte` is std::byte, or const std::byte for arrays that are only read.
template <typename Byte>
class ArrayList {
 public:
  // For `arrays` arrays. There is no element before the first SetArrays.
  ArrayList(size_t arrays, DType dtype);

  // Takes the addresses and the numbers of elements from tensor(i), i < the number of arrays.
  template <typename TensorOf>
  void SetArrays(const TensorOf& tensor) {
    for (size_t i = 0; i < data_.size(); ++i) {
      auto& found = tensor(i);
      data_[i] = static_cast<Byte*>(found.raw_data());
      begins_[i + 1] = begins_[i] + found.element_count();
    }
  }

  size_t size() const { return data_.size(); }
  DType dtype() const { return dtype_; }
  int64_t element_count() const { return begins_.back(); }
  // Return the address and the number of elements of array i.
  Byte* data(size_t i) const { return data_[i]; }
  int64_t element_count(size_t i) const { return begins_[i + 1] - begins_[i]; }

  // Returns the address of elements [begin, begin + count) if they lie together in memory, one
  // after the other; else nullptr.
  Byte* Find(int64_t begin, int64_t count) const;
  // Copy elements [begin, begin + count) to `to`, or from `from`, where all lie together. On a
  // device they append the work to the stream.
  void CopyTo(const KernelContext& run, int64_t begin, int64_t count, void* to);
  void CopyFrom(const KernelContext& run, const void* from, int64_t begin,
                int64_t count) requires(!std::is_const_v<Byte>);

 private:
  // Calls visit(address, bytes) for the parts of elements [begin, begin + count), in order.
  template <typename Visit>
  void ForEachPart(int64_t begin, int64_t count, const Visit& visit) const;

  DType dtype_;
  std::vector<Byte*> data_;
  std::vector<int64_t> begins_;  // the elements before each array, and at the end all of them
  std::vector<MemoryRun> runs_;
};

using InArrays = ArrayList<const std::byte>;
using OutArrays = ArrayList<std::byte>;

}  // namespace skiff
