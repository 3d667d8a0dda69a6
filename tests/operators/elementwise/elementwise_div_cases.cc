#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddElementwiseDivCases(CaseList& cases) {
  const BinaryFunction f = [](double x, double y) { return x / y; };
  const OperandMaker x = [](const Shape& shape, uint64_t seed) { return Uniform(shape, seed); };
  const OperandMaker y = [](const Shape& shape, uint64_t seed) {
    return Uniform(shape, seed, 0.5, 2.0);
  };
  AddBinaryCases("elementwise_div", f, x, y, true, cases);
  const BinaryFunction towards_zero = [](double x, double y) { return std::trunc(x / y); };
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    cases.push_back(BinaryCase(std::string(DTypeName(dtype)), "elementwise_div",
                               Integers({5, 7}, 1, -90, 90, dtype), Integers({7}, 2, 1, 9, dtype),
                               -1, towards_zero));
    cases.push_back(BinaryCase(std::string(DTypeName(dtype)) + "_negative", "elementwise_div",
                               Integers({5, 7}, 3, -90, 90, dtype),
                               Integers({5, 7}, 4, -9, 0, dtype), -1, towards_zero));
  }
}

}  // namespace skiff::harness
