#include "operators/collective/kernels/array_list.h"

#include <algorithm>

namespace skiff {

template <typename Byte>
ArrayList<Byte>::ArrayList(size_t arrays, DType dtype)
    : dtype_(dtype), data_(arrays, nullptr), begins_(arrays + 1, 0) {
  runs_.reserve(arrays);
}

template <typename Byte>
template <typename Visit>
void ArrayList<Byte>::ForEachPart(int64_t begin, int64_t count, const Visit& visit) const {
  const int64_t element_bytes = SizeOf(dtype_);
  const int64_t end = begin + count;
  auto i = static_cast<size_t>(std::ranges::upper_bound(begins_, begin) - begins_.begin()) - 1;
  for (; begin < end; ++i) {
    const int64_t part_end = std::min(end, begins_[i + 1]);
    if (begin < part_end) {
      visit(data_[i] + (begin - begins_[i]) * element_bytes, (part_end - begin) * element_bytes);
    }
    begin = part_end;
  }
}

template <typename Byte>
Byte* ArrayList<Byte>::Find(int64_t begin, int64_t count) const {
  Byte* first = nullptr;
  Byte* next = nullptr;
  bool are_together = true;
  ForEachPart(begin, count, [&](Byte* part, int64_t bytes) {
    if (first == nullptr) first = next = part;
    are_together = are_together && part == next;
    next = part + bytes;
  });
  return are_together ? first : nullptr;
}

template <typename Byte>
void ArrayList<Byte>::CopyTo(const KernelContext& run, int64_t begin, int64_t count, void* to) {
  runs_.clear();
  auto* next = static_cast<std::byte*>(to);
  ForEachPart(begin, count, [&](Byte* part, int64_t bytes) {
    runs_.push_back({.from = part, .to = next, .bytes = bytes});
    next += bytes;
  });
  MemoryMoverOf(run).CopyRuns(run, runs_);
}

template <typename Byte>
void ArrayList<Byte>::CopyFrom(const KernelContext& run, const void* from, int64_t begin,
                               int64_t count) requires(!std::is_const_v<Byte>) {
  runs_.clear();
  const auto* next = static_cast<const std::byte*>(from);
  ForEachPart(begin, count, [&](Byte* part, int64_t bytes) {
    runs_.push_back({.from = next, .to = part, .bytes = bytes});
    next += bytes;
  });
  MemoryMoverOf(run).CopyRuns(run, runs_);
}

template class ArrayList<std::byte>;
template class ArrayList<const std::byte>;

}  // namespace skiff
