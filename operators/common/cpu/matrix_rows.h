// Where the rows of a matrix are.
#pragma once

#include <cstdint>

namespace skiff {

// Rows of a matrix: `stride` apart from the first one or, if `each` isn't nullptr, row i at
// each[i].
template <typename T>
struct MatrixRows {
  const T* first = nullptr;
  int64_t stride = 0;
  const T* const* each = nullptr;

  const T* operator[](int64_t i) const { return each == nullptr ? first + i * stride : each[i]; }
};

}  // namespace skiff
