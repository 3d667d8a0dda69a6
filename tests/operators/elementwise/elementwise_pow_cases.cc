#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddElementwisePowCases(CaseList& cases) {
  const BinaryFunction f = [](double x, double y) { return std::pow(x, y); };
  const OperandMaker x = [](const Shape& shape, uint64_t seed) {
    return Uniform(shape, seed, 0.5, 2.0);
  };
  const OperandMaker y = [](const Shape& shape, uint64_t seed) {
    return Uniform(shape, seed, -2.0, 2.0);
  };
  AddBinaryCases("elementwise_pow", f, x, y, true, cases);
  AddIntegerBinaryCases("elementwise_pow", f, 1, 6, cases);
}

}  // namespace skiff::harness
