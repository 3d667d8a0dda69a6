#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddReshape2Cases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, std::vector<int32_t> shape,
                       const Shape& out) {
    cases.push_back(ReshapingCase("reshape2", name, x, {{"shape", std::move(shape)}}, out));
  };
  add("whole_shape", Uniform({2, 3, 4}, 1), {6, 4}, {6, 4});
  add("copies_and_infers", Uniform({2, 3, 4}, 2), {0, -1}, {2, 12});
  add("infers_first", Uniform({5, 7}, 3), {-1, 5, 1}, {7, 5, 1});
  add("copies_all", Uniform({5, 7}, 4), {0, 0}, {5, 7});
  add("infers_behind_an_empty_dim", Uniform({0, 3, 4}, 5), {0, -1}, {0, 12});
  add("infers_an_empty_dim", Uniform({0, 4}, 6), {-1, 4}, {0, 4});
  add("to_a_scalar", Uniform({1, 1}, 7), {}, Shape());
  add("splits_heads", Uniform({3, 5, 8}, 8), {0, 0, 2, 4}, {3, 5, 2, 4});
  add("int64", Integers({6, 2}, 9, -100, 100), {3, 4}, {3, 4});
  cases.back().dtypes = {DType::kFloat32};
  add("bool", Integers({6, 2}, 10, 0, 2, DType::kBool), {-1}, {12});
  cases.back().dtypes = {DType::kFloat32};
  add("many_parts", Uniform({257, 300}, 11), {300, 257}, {300, 257});
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
