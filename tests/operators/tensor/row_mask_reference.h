// Rows that a mask chooses, the naive way.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"
#include "tests/operators/half_case.h"

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

// Adds make(rows, mask) for some rows and masks.
template <typename Make>
void AddRowMaskCases(CaseList& cases, const Make& make) {
  const auto add = [&](const std::string& name, const Array& rows,
                       const std::vector<double>& mask) {
    OpCase op_case = make(rows, RowMask(mask));
    op_case.name = name;
    op_case.unchecked_gradient = "rows that depend on data: IfElse in conditional_test.cc";
    cases.push_back(std::move(op_case));
  };
  add("some_rows", Uniform({4, 3}, 1), {1, 0, 0, 1});
  add("numbers", Values({3, 2}, {1, -2, 3, 4.5, 5, -6}), {0, 1, 1});
  cases.back() = InHalf(cases.back());
  add("all_rows", Uniform({3, 2, 2}, 2), {1, 1, 1});
  add("no_rows", Uniform({2, 3}, 3), {0, 0});
}

}  // namespace skiff::harness
