// The elements of many arrays, one array behind the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace skiff {

// Calls body(array, first, last) for each array's share [first, last) of the elements [begin, end)
// of all. `begins`: how many elements lie before each array, and at the end all of them.
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
