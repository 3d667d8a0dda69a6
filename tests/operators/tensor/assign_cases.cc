#include "tests/operators/tensor/copy_case.h"

namespace skiff::harness {

void AddAssignCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x) {
    cases.push_back(CopyCase("assign", name, x));
  };
  add("image", Uniform({2, 17, 3, 2}, 1));
  add("scalar", Uniform(Shape(), 2));
  add("empty", Uniform({0, 3}, 3));
  add("int64", Integers({5}, 4, -9, 9));
  add("bool", Integers({5}, 5, 0, 2, DType::kBool));
  cases.push_back(CopyCase("memcpy", "flag", Integers({1}, 6, 0, 2, DType::kBool)));
  cases.push_back(CopyCase("memcpy", "image", Uniform({2, 17, 3, 2}, 7)));
}

}  // namespace skiff::harness
