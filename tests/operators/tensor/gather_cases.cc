#include "tests/operators/tensor/take_cases.h"

namespace skiff::harness {

void AddGatherCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const Array& index, int32_t axis) {
    cases.push_back(TakeCase("gather", name, x, index, "axis", axis, axis));
  };
  add("rows_twice", Uniform({5, 7}, 1), Integers({9}, 2, 0, 5), 0);
  add("column_of_indices", Uniform({5, 3, 2}, 3), Integers({4, 1}, 4, 0, 5), 0);
  add("int32_indices", Uniform({5, 3}, 5), Integers({6}, 6, 0, 5, DType::kInt32), 0);
  add("middle_axis", Uniform({3, 6, 5}, 7), Integers({4}, 8, 0, 6), 1);
  add("last_axis", Uniform({4, 9}, 9), Integers({13}, 10, 0, 9), 1);
  add("vector", Uniform({9}, 11), Integers({5}, 12, 0, 9), 0);
  add("scalar_index", Uniform({4, 3}, 13), Values(Shape(), {2}, DType::kInt64), 1);
  add("to_a_scalar", Uniform({4}, 14), Values(Shape(), {3}, DType::kInt64), 0);
  add("no_indices", Uniform({4, 3}, 15), Integers({0}, 16, 0, 3), 1);
  add("no_columns", Uniform({4, 0}, 17), Integers({3}, 18, 0, 4), 0);
  add("int64", Integers({5, 3}, 19, -9, 9), Integers({4}, 20, 0, 5), 0);
  add("bool", Integers({5, 3}, 21, 0, 2, DType::kBool), Integers({4}, 22, 0, 5), 0);
  add("long_rows", Uniform({3, 20011}, 23), Integers({4}, 24, 0, 3), 0);
  cases.back().gradients.clear();
  add("long_rows_gradient", Uniform({3, 5003}, 23), Integers({4}, 24, 0, 3), 0);
  add("many_single_elements", Uniform({3, 41}, 25), Integers({9001}, 26, 0, 41), 1);
  cases.back().gradients.clear();
  add("bert_masked_positions", Uniform({2048, 768}, 27), Integers({320, 1}, 28, 0, 2048), 0);
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
