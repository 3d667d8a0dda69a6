#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddSignCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return static_cast<double>((x > 0) - (x < 0)); };
  AddUnaryCases("sign", f, -1, 1, {0}, {}, cases);
  cases.push_back(UnaryCase("zero", "sign", Values({3}, {-2, 0, 3}), f));
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    cases.push_back(
        UnaryCase(std::string(DTypeName(dtype)), "sign", Integers({5, 7}, 9, -90, 90, dtype), f));
  }
}

}  // namespace skiff::harness
