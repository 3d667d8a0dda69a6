#include "tests/operators/tensor/repeat_cases.h"

namespace skiff::harness {

void AddExpandV2Cases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const std::vector<int32_t>& shape,
                       const Shape& out) {
    cases.push_back(RepeatCase("expand_v2", name, x, "shape", shape, out));
  };
  add("columns", Uniform({3, 1}, 1), {3, 5}, {3, 5});
  add("rows", Uniform({1, 5}, 2), {4, -1}, {4, 5});
  add("new_dims", Uniform({3, 1}, 3), {2, 4, -1, 5}, {2, 4, 3, 5});
  add("middle", Uniform({2, 1, 3}, 4), {-1, 4, -1}, {2, 4, 3});
  add("as_it_is", Uniform({3, 5}, 5), {3, -1}, {3, 5});
  add("scalar", Uniform(Shape(), 6), {2, 3}, {2, 3});
  add("scalar_to_scalar", Uniform(Shape(), 7), {}, Shape());
  add("empty", Uniform({0, 1}, 8), {-1, 4}, {0, 4});
  add("int32", Integers({2, 1}, 9, -9, 9, DType::kInt32), {2, 3}, {2, 3});
  add("wide", Uniform({70, 1}, 10), {70, 900}, {70, 900});
  cases.back().gradients.clear();
  add("many_columns", Uniform({2, 1}, 11), {2, 2100}, {2, 2100});
  add("many_rows", Uniform({1, 3}, 12), {70, 3}, {70, 3});
}

}  // namespace skiff::harness
