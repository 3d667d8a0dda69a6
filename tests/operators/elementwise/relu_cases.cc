#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddReluCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return x > 0 ? x : 0.0; };
  AddUnaryCases("relu", f, -1, 1, {0}, {}, cases);
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    cases.push_back(
        UnaryCase(std::string(DTypeName(dtype)), "relu", Integers({5, 7}, 9, -90, 90, dtype), f));
  }
}

}  // namespace skiff::harness
