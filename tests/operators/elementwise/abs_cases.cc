#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddAbsCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::abs(x); };
  AddUnaryCases("abs", f, -1, 1, {0}, {}, cases);
  cases.push_back(UnaryCase("int32", "abs", Integers({5, 7}, 20, -9, 9, DType::kInt32), f));
  cases.push_back(UnaryCase("int64", "abs", Integers({5, 7}, 21, -9, 9, DType::kInt64), f));
}

}  // namespace skiff::harness
