#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddElementwiseSubCases(CaseList& cases) {
  const BinaryFunction f = [](double x, double y) { return x - y; };
  const OperandMaker x = [](const Shape& shape, uint64_t seed) { return Uniform(shape, seed); };
  const OperandMaker y = [](const Shape& shape, uint64_t seed) { return Uniform(shape, seed); };
  AddBinaryCases("elementwise_sub", f, x, y, true, cases);
  AddIntegerBinaryCases("elementwise_sub", f, -90, 90, cases);
}

}  // namespace skiff::harness
