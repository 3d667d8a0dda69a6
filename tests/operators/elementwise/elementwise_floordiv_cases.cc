#include <cmath>
#include <string>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddElementwiseFloordivCases(CaseList& cases) {
  const BinaryFunction f = [](double x, double y) { return std::floor(x / y); };
  const OperandMaker x = [](const Shape& shape, uint64_t seed) {
    return Integers(shape, seed, -90, 90, DType::kFloat32);
  };
  const OperandMaker y = [](const Shape& shape, uint64_t seed) {
    return Integers(shape, seed, 1, 9, DType::kFloat32);
  };
  AddBinaryCases("elementwise_floordiv", f, x, y, false, cases);
  for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kFloat64}) {
    const std::string name(DTypeName(dtype));
    cases.push_back(BinaryCase(name, "elementwise_floordiv", Integers({5, 7}, 1, -90, 90, dtype),
                               Integers({7}, 2, 1, 9, dtype), -1, f));
    cases.push_back(BinaryCase(name + "_negative", "elementwise_floordiv",
                               Integers({5, 7}, 3, -90, 90, dtype),
                               Integers({5, 7}, 4, -9, 0, dtype), -1, f));
  }
  // 1 / 0.1f is less than 10, which it rounds to in float32.
  cases.push_back(BinaryCase("just_below_an_integer", "elementwise_floordiv",
                             Values({4}, {1, 6, -1, -6}), Values({1}, {0.1f}), -1, f));
}

}  // namespace skiff::harness
