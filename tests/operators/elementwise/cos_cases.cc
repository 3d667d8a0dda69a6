#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddCosCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::cos(x); };
  AddUnaryCases("cos", f, -7, 7, {}, {}, cases);
}

}  // namespace skiff::harness
