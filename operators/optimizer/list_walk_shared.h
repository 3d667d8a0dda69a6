// The elements of many arrays, one array behind the other, as one loop for all threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/base/parallel.h"

namespace skiff {

// Calls body(array, first, last) for the elements [first, last) of an array, at most `block` of
// them, until every element has had its turn. `begins`: how many elements lie before each array,
// and at the end all of them. Threads take multiples of `grain`; `body` must not throw.
template <typename Body>
void ForEachBlock(const std::vector<int64_t>& begins, int64_t grain, int64_t block,
                  const Body& body) {
  ParallelFor(begins.back(), grain, [&](int64_t begin, int64_t end) {
    auto i = static_cast<size_t>(std::ranges::upper_bound(begins, begin) - begins.begin()) - 1;
    for (; begin < end; ++i) {
      const int64_t array_end = std::min(end, begins[i + 1]);
      while (begin < array_end) {
        const int64_t block_end = std::min(begin + block, array_end);
        body(i, begin - begins[i], block_end - begins[i]);
        begin = block_end;
      }
    }
  });
}

}  // namespace skiff
