#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddSquareCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return x * x; };
  AddUnaryCases("square", f, -2, 2, {}, {}, cases);
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    cases.push_back(
        UnaryCase(std::string(DTypeName(dtype)), "square", Integers({5, 7}, 9, -90, 90, dtype), f));
  }
}

}  // namespace skiff::harness
