// A list of ranges. The elements are numbered through all ranges, so that threads can share them
// evenly however many ranges there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "operators/optimizer/kernels/update_range.h"

namespace skiff {

template <typename T>
class RangeList {
 public:
  size_t size() const { return ranges_.size(); }
  UpdateRange<T>& operator[](size_t k) { return ranges_[k]; }
  const UpdateRange<T>& operator[](size_t k) const { return ranges_[k]; }
  int64_t element_count() const { return begins_.back(); }
  // Entry k is the number of elements before range k. The last entry is element_count().
  const std::vector<int64_t>& begins() const { return begins_; }

  // Makes room for `count` ranges; appending them then allocates nothing.
  void Reserve(size_t count) {
    ranges_.reserve(count);
    begins_.reserve(count + 1);
  }
  void Clear() {
    ranges_.clear();
    begins_.assign(1, 0);
  }
  void Append(const UpdateRange<T>& range) {
    ranges_.push_back(range);
    begins_.push_back(begins_.back() + range.count);
  }
  // Makes the last range `count` elements longer. There must be one.
  void ExtendLast(int64_t count) {
    ranges_.back().count += count;
    begins_.back() += count;
  }

 private:
  std::vector<UpdateRange<T>> ranges_;
  std::vector<int64_t> begins_ = {0};
};

}  // namespace skiff
