#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddElementwiseMulCases(CaseList& cases) {
  const BinaryFunction f = [](double x, double y) { return x * y; };
  const OperandMaker x = [](const Shape& shape, uint64_t seed) { return Uniform(shape, seed); };
  const OperandMaker y = [](const Shape& shape, uint64_t seed) { return Uniform(shape, seed); };
  AddBinaryCases("elementwise_mul", f, x, y, true, cases);
  for (const auto& [name, rows] : SelectedRowsOfAllKinds()) {
    OpCase one = UnaryCase(name, "elementwise_mul", rows, {});
    one.inputs["Y"] = {Values({1}, {-2.5})};
    one.reference = [](const Arrays& inputs) {
      Array out = inputs.at("X")[0];
      for (double& value : out.values) value *= inputs.at("Y")[0].values[0];
      return Arrays{{"Out", {out}}};
    };
    cases.push_back(one);
  }
  AddIntegerBinaryCases("elementwise_mul", f, -90, 90, cases);
}

}  // namespace skiff::harness
