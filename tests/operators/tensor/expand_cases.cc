#include "tests/operators/tensor/repeat_cases.h"

namespace skiff::harness {

void AddExpandCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const std::vector<int32_t>& times) {
    Shape out = x.shape;
    for (int axis = 0; axis < out.rank(); ++axis) out[axis] *= times[static_cast<size_t>(axis)];
    cases.push_back(RepeatCase("expand", name, x, "expand_times", times, out));
  };
  add("rows", Uniform({3, 5}, 1), {4, 1});
  add("columns", Uniform({3, 5}, 2), {1, 3});
  add("both", Uniform({3, 5}, 3), {2, 3});
  add("ones", Uniform({1, 4, 1}, 4), {3, 1, 7});
  add("not_at_all", Uniform({3, 5}, 5), {1, 1});
  add("empty", Uniform({0, 3}, 6), {2, 2});
  add("scalar", Uniform(Shape(), 7), {});
  add("int64", Integers({2, 3}, 8, -9, 9), {2, 2});
  add("bool", Integers({2, 3}, 9, 0, 2, DType::kBool), {3, 1});
  add("many", Uniform({40, 1, 50}, 10), {1, 60, 1});
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
