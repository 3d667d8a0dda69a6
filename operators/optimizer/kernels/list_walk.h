// Walks over the elements of many arrays, taken one array after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/base/parallel.h"

namespace skiff {

// The number of elements for which several arrays fit into the first cache together, and the number
// that is worth a thread.
inline constexpr int64_t kListBlock = 2048;
inline constexpr int64_t kListGrain = 4 * kListBlock;

// Calls body(begin, end) for blocks of at most kListBlock of `elements` elements, on all threads.
// The blocks don't depend on the number and order of threads. `body` must not throw.
template <typename Body>
void ForEachBlock(int64_t elements, const Body& body) {
  ParallelFor(elements, kListGrain, [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += kListBlock) body(begin, std::min(begin + kListBlock, end));
  });
}

// Calls body(array, first, last) for each array's share [first, last) of the elements [begin, end)
// of all. `begins` holds the number of elements before each array, and at the end the number of all
// elements.
template <typename Body>
void ForEachArray(const std::vector<int64_t>& begins, int64_t begin, int64_t end,
                  const Body& body) {
  auto i = static_cast<size_t>(std::ranges::upper_bound(begins, begin) - begins.begin()) - 1;
  for (; begin < end; ++i) {
    const int64_t array_end = std::min(end, begins[i + 1]);
    if (begin < array_end) body(i, begin - begins[i], array_end - begins[i]);
    begin = array_end;
  }
}

}  // namespace skiff
