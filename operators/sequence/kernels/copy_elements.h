// Copies of all elements, for ops that change only shapes and offsets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/parallel.h"

namespace skiff {

// Copies `count` elements, on several threads. Nothing is done if both are the same.
template <typename T>
void CopyElements(const T* from, int64_t count, T* to) {
  if (from == to) return;
  ParallelFor(count, 65536, [=](int64_t begin, int64_t end) {
    std::copy_n(from + begin, end - begin, to + begin);
  });
}

}  // namespace skiff
