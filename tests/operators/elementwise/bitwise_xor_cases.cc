#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddBitwiseXorCases(CaseList& cases) {
  AddBitwiseCases(
      "bitwise_xor", [](int64_t x, int64_t y) { return x ^ y; }, cases);
}

}  // namespace skiff::harness
