#include <cmath>
#include <limits>

#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddIsfiniteCases(CaseList& cases) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto add = [&](const std::string& name, Array x, bool expected) {
    OpCase one = UnaryCase(name, "isfinite", std::move(x), {});
    one.reference = [expected](const Arrays&) {
      return Arrays{{"Out", {Values({1}, {expected ? 1.0 : 0.0}, DType::kBool)}}};
    };
    cases.push_back(one);
  };
  add("finite", Uniform({5, 7}, 1), true);
  add("infinite", Values({3}, {1, infinity, 2}), false);
  add("minus_infinity_last", Values({2, 2}, {1, 3, 2, -infinity}), false);
  add("nan_first", Values({2, 2}, {nan, 3, 2, 1}), false);
  add("no_elements", Uniform({0, 7}, 2), true);
  add("int32", Integers({5}, 3, -9, 9, DType::kInt32), true);
  add("int64", Integers({5}, 4, -9, 9, DType::kInt64), true);
  Array many = Uniform({70003}, 5);
  add("several_threads", many, true);
  for (const auto& [name, x] : SelectedRowsOfAllKinds()) add(name, x, true);
  add("selected_rows_nan", SelectedRows(Values({3, 2}, {1, 2, 3, 4, 5, nan}), {2, -1, 2}, 3),
      false);
  add("selected_rows_unused_nan", SelectedRows(Values({2, 2}, {nan, infinity, 3, 4}), {-1, 2}, 3),
      true);
  many.values[70002] = nan;
  add("several_threads_nan", many, false);
}

}  // namespace skiff::harness
