#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddElementwiseMaxCases(CaseList& cases) {
  const BinaryFunction f = [](double x, double y) { return x > y ? x : y; };
  const OperandMaker x = [](const Shape& shape, uint64_t seed) {
    return UniformAwayFrom(shape, seed, {0}, 0.05);
  };
  const OperandMaker y = [](const Shape& shape, uint64_t seed) {
    return UniformAwayFrom(shape, seed, {0}, 0.05);
  };
  AddBinaryCases("elementwise_max", f, x, y, true, cases);
  AddIntegerBinaryCases("elementwise_max", f, -90, 90, cases);
}

}  // namespace skiff::harness
