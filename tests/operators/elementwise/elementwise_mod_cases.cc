#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddElementwiseModCases(CaseList& cases) {
  const BinaryFunction f = [](double x, double y) { return x - y * std::floor(x / y); };
  const OperandMaker x = [](const Shape& shape, uint64_t seed) {
    return Integers(shape, seed, -90, 90, DType::kFloat32);
  };
  const OperandMaker y = [](const Shape& shape, uint64_t seed) {
    return Integers(shape, seed, 1, 9, DType::kFloat32);
  };
  AddBinaryCases("elementwise_mod", f, x, y, false, cases);
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    cases.push_back(BinaryCase(std::string(DTypeName(dtype)), "elementwise_mod",
                               Integers({5, 7}, 1, -90, 90, dtype), Integers({7}, 2, 1, 9, dtype),
                               -1, f));
    cases.push_back(BinaryCase(std::string(DTypeName(dtype)) + "_negative", "elementwise_mod",
                               Integers({5, 7}, 3, -90, 90, dtype),
                               Integers({5, 7}, 4, -9, 0, dtype), -1, f));
  }
  cases.push_back(BinaryCase("float64_negative", "elementwise_mod",
                             Integers({5, 7}, 5, -90, 90, DType::kFloat64),
                             Integers({7}, 6, -9, 0, DType::kFloat64), -1, f));
}

}  // namespace skiff::harness
