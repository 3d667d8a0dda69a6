// The order of elements in top_k, top_k_v2 and argsort, and the selection of the first ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "operators/common/axis_extents.h"
#include "operators/common/first_bad_index.h"
#include "operators/common/half.h"

namespace skiff {

// Returns whether element a at index i comes before element b at index j: if it is larger
// (kDescending) or smaller, or equal and i < j. NaN counts as the largest.
template <bool kDescending, typename T>
bool StandsBefore(T element_a, int64_t i, T element_b, int64_t j) {
  using Wide = WideType<T>;
  const auto a = static_cast<Wide>(element_a);
  const auto b = static_cast<Wide>(element_b);
  if constexpr (std::is_floating_point_v<Wide>) {
    if (std::isnan(a) || std::isnan(b)) {
      if (std::isnan(a) && std::isnan(b)) return i < j;
      return std::isnan(a) == kDescending;
    }
  }
  if (a == b) return i < j;
  return kDescending ? a > b : a < b;
}

// A heap of the first elements so far, in the outputs of the line, so that the selection needs no
// memory of its own. The last of these elements is at the root.
template <bool kDescending, typename T>
class LineHeap {
 public:
  LineHeap(T* values, int64_t* indices, int64_t stride)
      : values_(values), indices_(indices), stride_(stride) {}

  // Restores the order below `root` among the first `size` elements.
  void SiftDown(int64_t root, int64_t size) {
    for (int64_t child = 2 * root + 1; child < size; child = 2 * root + 1) {
      if (child + 1 < size && Before(child, child + 1)) ++child;
      if (!Before(root, child)) return;
      Swap(root, child);
      root = child;
    }
  }
  bool RootStandsAfter(T value, int64_t index) const {
    return StandsBefore<kDescending>(value, index, values_[0], indices_[0]);
  }
  void Set(int64_t position, T value, int64_t index) {
    values_[position * stride_] = value;
    indices_[position * stride_] = index;
  }
  void Swap(int64_t i, int64_t j) {
    std::swap(values_[i * stride_], values_[j * stride_]);
    std::swap(indices_[i * stride_], indices_[j * stride_]);
  }

 private:
  bool Before(int64_t i, int64_t j) const {
    return StandsBefore<kDescending>(values_[i * stride_], indices_[i * stride_],
                                     values_[j * stride_], indices_[j * stride_]);
  }

  T* values_;
  int64_t* indices_;
  int64_t stride_;
};

// Writes the first k elements of a line, in order, and their indices. 1 <= k <= length. Takes
// O(length · log k) steps; most elements only compare with the root.
template <bool kDescending, typename T>
void SelectLine(const T* x, int64_t length, int64_t stride, int64_t k, T* values,
                int64_t* indices) {
  LineHeap<kDescending, T> heap(values, indices, stride);
  for (int64_t i = 0; i < k; ++i) heap.Set(i, x[i * stride], i);
  for (int64_t i = k / 2; i-- > 0;) heap.SiftDown(i, k);
  for (int64_t i = k; i < length; ++i) {
    if (!heap.RootStandsAfter(x[i * stride], i)) continue;
    heap.Set(0, x[i * stride], i);
    heap.SiftDown(0, k);
  }
  for (int64_t size = k - 1; size > 0; --size) {
    heap.Swap(0, size);
    heap.SiftDown(0, size);
  }
}

// Does the same for every line along the axis. The outputs are [outer, k, inner]. Threaded.
template <bool kDescending, typename T>
void SelectLines(const AxisExtents& extents, int64_t k, const T* x, T* values, int64_t* indices) {
  const AxisExtents selected{.outer = extents.outer, .length = k, .inner = extents.inner};
  ParallelFor(extents.lines(), extents.grain(), [=](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t to = selected.Start(line);
      SelectLine<kDescending>(x + extents.Start(line), extents.length, extents.inner, k,
                              values + to, indices + to);
    }
  });
}

// Sets dx to the gradients at the places of each line, and to 0 elsewhere. Gradients and places are
// [outer, k, inner]. Threaded. Throws Error that names `op` for a place outside the line.
template <typename T>
void SpreadToPlaces(std::string_view op, const AxisExtents& extents, int64_t k,
                    const int64_t* places, const T* gradient, T* dx) {
  const AxisExtents selected{.outer = extents.outer, .length = k, .inner = extents.inner};
  FirstBadIndex bad;
  ParallelFor(extents.lines(), extents.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      T* to = dx + extents.Start(line);
      for (int64_t i = 0; i < extents.length; ++i) to[i * extents.inner] = 0;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t from = selected.Start(line) + i * extents.inner;
        // Read once: another thread may change a feed.
        const int64_t place = places[from];
        if (place < 0 || place >= extents.length) {
          bad.Record(from);
        } else {
          to[place * extents.inner] = gradient[from];
        }
      }
    }
  });
  const std::optional<int64_t> found = bad.Find();
  SKIFF_ENFORCE(!found, kOutOfRange, op, ": Indices[", *found, "] = ", places[*found],
                " is outside [0, ", extents.length, "), the places along the axis");
}

}  // namespace skiff
