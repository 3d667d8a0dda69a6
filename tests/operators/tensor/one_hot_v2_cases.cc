#include "tests/operators/tensor/one_hot_cases.h"

namespace skiff::harness {

void AddOneHotV2Cases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& ids, DType dtype) {
    cases.push_back(OneHotCase("one_hot_v2", name, ids, ids.shape, 5, dtype, false));
  };
  add("float32", Integers({3, 4}, 1, 0, 5), DType::kFloat32);
  add("float64", Integers({7}, 2, 0, 5), DType::kFloat64);
  add("int64", Integers({7}, 3, 0, 5), DType::kInt64);
  add("int32", Integers({7}, 4, 0, 5), DType::kInt32);
  add("bool", Integers({7}, 5, 0, 5), DType::kBool);
  add("int32_indices", Integers({3, 1}, 6, 0, 5, DType::kInt32), DType::kFloat32);
  add("scalar", Values(Shape(), {2}, DType::kInt64), DType::kFloat32);
  add("no_indices", Integers({0, 2}, 7, 0, 5), DType::kFloat32);
  const Array outside = Values({4}, {-1, 5, 2, 900}, DType::kInt64);
  cases.push_back(OneHotCase("one_hot_v2", "out_of_range", outside, {4}, 5, DType::kFloat32, true));
}

}  // namespace skiff::harness
