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
  // Where the logarithm of X is infinite.
  cases.push_back(
      {.name = "gradient_of_the_exponent_at_its_ends",
       .type = "elementwise_pow_grad",
       .inputs = {{"X", {Values({6}, {0, 0, 0, INFINITY, INFINITY, 2})}},
                  {"Y", {Values({6}, {0, 1, 0.5, -1, -0.5, 0})}},
                  {"Out@GRAD", {Values({6}, {1, 2, 3, 4, 5, 6})}}},
       .reference =
           [](const Arrays&) {
             return Arrays{{"Y@GRAD", {Values({6}, {0, 0, 0, 0, 0, 6 * std::log(2.0)})}}};
           },
       .outputs = {{"Y@GRAD", 1}}});
}

}  // namespace skiff::harness
