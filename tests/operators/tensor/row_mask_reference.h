// Rows that a mask chooses, the naive way.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

inline Array RowMask(const std::vector<double>& mask) {
  return Values({static_cast<int64_t>(mask.size()), 1}, mask, DType::kBool);
}

inline Array RowsWhere(const Array& x, const Array& mask, bool value) {
  const int64_t width = x.shape.element_count(1, x.shape.rank());
  Array rows = x;
  rows.values.clear();
  rows.shape[0] = 0;
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    if ((mask.values[static_cast<size_t>(i)] != 0) != value) continue;
    ++rows.shape[0];
    for (int64_t k = 0; k < width; ++k) {
      rows.values.push_back(x.values[static_cast<size_t>(i * width + k)]);
    }
  }
  return rows;
}

}  // namespace skiff::harness
