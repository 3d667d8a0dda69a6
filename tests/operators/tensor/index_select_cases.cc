#include "tests/operators/tensor/take_cases.h"

namespace skiff::harness {

void AddIndexSelectCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const Array& index, int32_t dim,
                       int axis) {
    cases.push_back(TakeCase("index_select", name, x, index, "dim", dim, axis));
  };
  add("rows", Uniform({5, 7}, 1), Integers({9}, 2, 0, 5), 0, 0);
  add("last_dim_from_the_back", Uniform({2, 3, 5}, 3), Integers({4}, 4, 0, 5), -1, 2);
  add("middle_dim_from_the_back", Uniform({2, 3, 5}, 5), Integers({7, 1}, 6, 0, 3), -2, 1);
  add("int32_indices", Uniform({4, 6}, 7), Integers({5}, 8, 0, 6, DType::kInt32), 1, 1);
  add("no_rows", Uniform({0, 3}, 9), Integers({2}, 10, 0, 3), 1, 1);
  add("no_indices", Uniform({4, 3}, 11), Integers({0}, 12, 0, 3), 0, 0);
  add("int32", Integers({5, 3}, 13, -9, 9, DType::kInt32), Integers({4}, 14, 0, 3), 1, 1);
}

}  // namespace skiff::harness
