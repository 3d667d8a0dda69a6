#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddBitwiseNotCases(CaseList& cases) {
  cases.push_back(UnaryCase("bool", "bitwise_not", Integers({5, 7}, 1, 0, 2, DType::kBool),
                            [](double x) { return x == 0 ? 1.0 : 0.0; }));
  // The bits of -1 - x are those of x, turned.
  const UnaryFunction turned = [](double x) { return -1 - x; };
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    const std::string name(DTypeName(dtype));
    cases.push_back(
        UnaryCase(name, "bitwise_not", Integers({5, 7}, 2, -1000, 1000, dtype), turned));
    cases.push_back(
        UnaryCase(name + "_rank_0", "bitwise_not", Integers({}, 3, -9, 9, dtype), turned));
    cases.push_back(
        UnaryCase(name + "_no_elements", "bitwise_not", Integers({0, 3}, 4, -9, 9, dtype), turned));
  }
  const double last = std::numeric_limits<int32_t>::max();
  Array ends = Values({3}, {last, -1 - last, -1}, DType::kInt32);
  cases.push_back(UnaryCase("ends", "bitwise_not", ends, turned));
  cases.push_back(UnaryCase("several_threads", "bitwise_not",
                            Integers({70003}, 5, -1000, 1000, DType::kInt64), turned));
}

}  // namespace skiff::harness
