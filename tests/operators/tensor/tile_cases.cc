#include "tests/operators/tensor/repeat_cases.h"

namespace skiff::harness {

void AddTileCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const std::vector<int32_t>& times,
                       const Shape& out) {
    cases.push_back(RepeatCase("tile", name, x, "repeat_times", times, out));
  };
  add("both", Uniform({3, 5}, 1), {2, 3}, {6, 15});
  add("fewer_times_than_dims", Uniform({2, 3, 4}, 2), {2}, {2, 3, 8});
  add("more_times_than_dims", Uniform({2, 3}, 3), {2, 4, 1, 3}, {2, 4, 2, 9});
  add("without_times", Uniform({2, 3}, 4), {}, {2, 3});
  add("scalar", Uniform(Shape(), 5), {2, 3}, {2, 3});
  add("scalar_to_scalar", Uniform(Shape(), 6), {}, Shape());
  add("empty", Uniform({2, 0}, 7), {2, 3}, {4, 0});
  add("int64", Integers({2, 3}, 8, -9, 9), {2, 2}, {4, 6});
  add("bool", Integers({5}, 9, 0, 2, DType::kBool), {3}, {15});
  // More repeats and dims in turn than a shape holds: the gradient takes two sums and three.
  add("every_axis_of_five", Uniform({2, 2, 3, 2, 2}, 10), {2, 3, 2, 2, 2}, {4, 6, 6, 4, 4});
  add("every_axis_of_nine", Uniform({2, 2, 1, 2, 2, 2, 2, 2, 2}, 11), {2, 2, 2, 2, 2, 2, 2, 2, 2},
      {4, 4, 2, 4, 4, 4, 4, 4, 4});
}

}  // namespace skiff::harness
