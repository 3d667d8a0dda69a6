// How the blocked convolutions cut their work. A part is what one thread does; the number of parts
// is fixed when a pass over the data is made.
#pragma once

#include <cstdint>

#include "framework/base/parallel.h"
#include "operators/nn/image_window_shared.h"

namespace skiff {

// What a part may hold in the second-level cache, with room for what streams through it.
inline constexpr int64_t kCacheFloats = 640 * 1024 / 4;
// Tiles that a row of the product's kernel takes (14 with 32 registers).
inline constexpr int64_t kRowGroup = 14;

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Range `index` of `count` equal ones.
constexpr IndexRange Share(int64_t total, int64_t index, int64_t count) {
  return {total * index / count, total * (index + 1) / count};
}

constexpr int64_t Size(const IndexRange& range) { return range.end - range.begin; }

// Calls body(index) for [0, count), a thread for each as far as there are threads.
template <typename Body>
void ForEachPart(int64_t count, const Body& body) {
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace skiff
