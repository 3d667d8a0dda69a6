#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddElementwiseMulCases(CaseList& cases) {
  const BinaryFunction f = [](double x, double y) { return x * y; };
  const OperandMaker x = [](const Shape& shape, uint64_t seed) { return Uniform(shape, seed); };
  const OperandMaker y = [](const Shape& shape, uint64_t seed) { return Uniform(shape, seed); };
  AddBinaryCases("elementwise_mul", f, x, y, true, cases);
  AddIntegerBinaryCases("elementwise_mul", f, -90, 90, cases);
}

}  // namespace skiff::harness
